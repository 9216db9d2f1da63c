/** Which images an agent has to prefetch, and what it reports of them. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  awaitImageStep,
  FleetSchema,
  FleetSpecSchema,
  PrefetchedImageSchema,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { connectAgent, type PlainAgent } from '../../host/testing/plain-agent.ts';
import { type Rig, rigWith } from '../../host/testing/rig.ts';

const reference = `registry.example/os@sha256:${'ab'.repeat(32)}`;
const named = { reference, architecture: 'amd64', netboot: false };

async function started(steps: readonly string[] = [awaitImageStep]) {
  const rig = rigWith();
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  change(rig, (record) => {
    record.agentSteps = steps.map((name) => create(agent.StepDescriptionSchema, { name }));
  });
  return { rig, replica, plain };
}

function change(rig: Rig, by: (record: wire.RackRecord) => void): void {
  const record = rig.rack();
  if (record === undefined) throw new Error('the rig has a rack');
  by(record);
  rig.put('racks.r1', wire.RackRecordSchema, record);
}

function want(rig: Rig, ...references: readonly string[]): void {
  change(rig, (record) => {
    record.prefetchedImages = references.map((each) =>
      create(PrefetchedImageSchema, { ...named, reference: each, image: each }),
    );
  });
}

async function beat(rig: Rig, plain: PlainAgent): Promise<void> {
  await plain.say({ case: 'heartbeat', value: create(agent.HeartbeatSchema) });
  await rig.advance(10);
}

const lists = (plain: PlainAgent) =>
  plain.of('prefetchImages').map(({ images }) => images.map((each) => each.image?.reference));

test('the list is sent only when it changes', async () => {
  const { rig, plain } = await started();
  await beat(rig, plain);
  want(rig, reference);
  await beat(rig, plain);
  await beat(rig, plain);
  want(rig);
  await beat(rig, plain);
  expect(lists(plain)).toEqual([[], [reference], []]);
});

test('an agent that does not know deployments is not asked', async () => {
  const { rig, plain } = await started([]);
  want(rig, reference);
  await beat(rig, plain);
  expect(lists(plain)).toEqual([]);
});

test('the secret of its registry goes before the list that names it, once', async () => {
  const { rig, plain } = await started();
  const registries = [{ registry: 'registry.example', credential: 'credentials/c1' }];
  const fleet = create(FleetSchema, { spec: create(FleetSpecSchema, { registries }) });
  rig.put('fleet.fleet', wire.FleetRecordSchema, create(wire.FleetRecordSchema, { fleet }));
  want(rig, reference);
  await beat(rig, plain);
  want(rig, reference, reference.replaceAll('ab', 'cd'));
  await beat(rig, plain);
  const kinds = plain.received.map((message) => message.case);
  expect(kinds.indexOf('credentialValue')).toBeLessThan(kinds.indexOf('prefetchImages'));
  const given = plain.of('credentialValue').filter(({ name }) => name === 'credentials/c1');
  expect(given).toHaveLength(1);
  expect(plain.of('prefetchImages').at(-1)?.images[0]?.image).toMatchObject({
    ...{ credential: 'credentials/c1', credentialVersion: 1n },
  });
});
