import { expect, expectTypeOf, test } from 'vitest';
import {
  asPoolId,
  asRevision,
  asRunNumber,
  asTemplateId,
  asTokenId,
  asWorkflowRunNumber,
  type DeploymentId,
  deploymentIdOf,
  type HostUid,
  type OperationId,
  type PoolId,
  type Revision,
  type RunNumber,
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

test('an id that a person chose is taken after its check alone', () => {
  expectTypeOf<string>().not.toExtend<PoolId>();
  expectTypeOf<string>().not.toExtend<TemplateId>();
  expectTypeOf<string>().not.toExtend<TokenId>();
  expectTypeOf<PoolId>().not.toExtend<TemplateId>();
  expectTypeOf<TemplateId>().not.toExtend<TokenId>();
  for (const checked of [asPoolId, asTemplateId, asTokenId]) {
    for (const fit of ['a', 'web-1', 'a'.repeat(63)]) expect(checked(fit)).toBe(fit);
    for (const unfit of ['', 'Web', '1a', 'a-', 'a.b', 'a/b', 'a'.repeat(64)]) {
      expect(() => checked(unfit)).toThrow(`${JSON.stringify(unfit)} is no id`);
    }
  }
});

test('a plain number is no number of a run or revision, and none of these is another', () => {
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
