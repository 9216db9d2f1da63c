import { expect, expectTypeOf, test } from 'vitest';
import {
  asBatchId,
  asCredentialId,
  asIncarnation,
  asPoolId,
  asPoolUid,
  asReplicaId,
  asRevision,
  asRunNumber,
  asSinkUid,
  asTemplateId,
  asTokenId,
  asWorkflowRunNumber,
  type BatchId,
  type CredentialId,
  type DeploymentId,
  deploymentIdOf,
  type HostUid,
  type Incarnation,
  type OperationId,
  type PoolId,
  type PoolUid,
  type ReplicaId,
  type Revision,
  type RunNumber,
  type SinkUid,
  type TemplateId,
  type TokenId,
  type WorkflowRunNumber,
} from './ids.ts';

test('an id is none of another kind, and a text may become one', () => {
  expectTypeOf<OperationId>().not.toExtend<HostUid>();
  expectTypeOf<HostUid>().not.toExtend<OperationId>();
  expectTypeOf<string>().toExtend<HostUid>();
});

test('a deployment is named by its host and run alone', () => {
  expectTypeOf<string>().not.toExtend<DeploymentId>();
  expect(deploymentIdOf('u1', asRunNumber(3))).toBe('u1/3');
});

test('a text that a person chose becomes an id only through its check', () => {
  expectTypeOf<string>().not.toExtend<PoolId>();
  expectTypeOf<string>().not.toExtend<TemplateId>();
  expectTypeOf<string>().not.toExtend<TokenId>();
  expectTypeOf<string>().not.toExtend<CredentialId>();
  expectTypeOf<string>().not.toExtend<BatchId>();
  expectTypeOf<BatchId>().not.toExtend<PoolId>();
  expectTypeOf<PoolId>().not.toExtend<TemplateId>();
  expectTypeOf<TemplateId>().not.toExtend<TokenId>();
  expectTypeOf<CredentialId>().not.toExtend<TokenId>();
  for (const checked of [asBatchId, asCredentialId, asPoolId, asTemplateId, asTokenId]) {
    for (const fit of ['a', 'web-1', 'a'.repeat(63)]) expect(checked(fit)).toBe(fit);
    for (const unfit of ['', 'Web', '1a', 'a-', 'a.b', 'a/b', 'a'.repeat(64)]) {
      expect(() => checked(unfit)).toThrow(`${JSON.stringify(unfit)} is no id`);
    }
  }
});

test('an opaque id is taken from its own maker alone', () => {
  expectTypeOf<string>().not.toExtend<PoolUid>();
  expectTypeOf<string>().not.toExtend<SinkUid>();
  expectTypeOf<string>().not.toExtend<Incarnation>();
  expect(asIncarnation('0f3c')).toBe('0f3c');
  expectTypeOf<string>().not.toExtend<ReplicaId>();
  expectTypeOf<PoolUid>().not.toExtend<SinkUid>();
  expectTypeOf<SinkUid>().not.toExtend<ReplicaId>();
  for (const made of [asPoolUid, asSinkUid, asReplicaId]) expect(made('k3x/9')).toBe('k3x/9');
  expect(() => asReplicaId('')).toThrow('"" is no id of a replica');
});

test('the compiler refuses a plain number as the number of a run or a revision', () => {
  expectTypeOf<bigint>().not.toExtend<RunNumber>();
  expectTypeOf<bigint>().not.toExtend<WorkflowRunNumber>();
  expectTypeOf<bigint>().not.toExtend<Revision>();
  expectTypeOf<WorkflowRunNumber>().not.toExtend<RunNumber>();
  expectTypeOf<RunNumber>().not.toExtend<Revision>();
  for (const numbered of [asRunNumber, asWorkflowRunNumber, asRevision]) {
    expect(numbered(7)).toBe(7n);
    expect(() => numbered(-1n)).toThrow('-1 is negative; it counts from 0');
  }
});
