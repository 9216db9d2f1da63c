/** A host whose run has just ended, for tests of its next state. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  type HostSpecSchema,
  HostState,
  HostStatusSchema,
  type Inventory,
  RunSchema,
  type RunStepSchema,
  type store,
} from '@rackwright/messages';
import { beginPass } from '../pass/pass.ts';
import { bench } from '../testing/bench.ts';
import { applyRunEnd } from './landing.ts';

export type Init<S extends Parameters<typeof create>[0]> = Exclude<
  MessageInitShape<S>,
  { $typeName: string }
>;

export const nowMs = Date.UTC(2026, 0, 1);

interface More {
  readonly spec?: Init<typeof HostSpecSchema>;
  readonly record?: Partial<store.HostRecord>;
  readonly inventory?: Inventory;
}

/** The host after a run of this kind with this end. */
export function landed(
  run: Init<typeof RunSchema>,
  status: Init<typeof HostStatusSchema> = {},
  { spec = {}, record = {}, inventory }: More = {},
) {
  const host = bench(spec);
  if (host.record.host === undefined) throw new Error('the bench has a host');
  const before = { state: HostState.MANAGEABLE, useEpoch: 1n, ...status };
  host.record.host.status = create(HostStatusSchema, before);
  Object.assign(host.record, record);
  const facts =
    inventory === undefined ? host.snapshot.facts : { ...host.snapshot.facts, inventory };
  const pass = beginPass(host.record, { ...host.snapshot, facts, nowMs });
  const startTime = timestampFromMs(nowMs - 1_000);
  applyRunEnd(
    pass,
    create(RunSchema, { number: asRunNumber(7), requestedBy: 'user:ann', startTime, ...run }),
  );
  return pass;
}

/** A step that was tried. */
export const did = (name: string, more: Init<typeof RunStepSchema> = {}) => ({
  ...{ name, attempt: 1 },
  ...more,
});
