/** The fleet in rows, from a watch of the store, for queries about more than one host. */
export type { CollectionKind, FoundRecords } from './collection.ts';
export {
  type FleetCounts,
  FleetView,
  type FleetViewDependencies,
  type HostConditions,
  type RowObserver,
} from './fleet-view.ts';
export { type FleetRow, type HostRow, rowOf, type UnreadableRow } from './row.ts';
export { type FieldValue, FleetRows } from './rows.ts';
export type { FleetTally, RackTally } from './tally.ts';
export {
  type MachineTraits,
  machineKeys,
  traitKeys,
  traitsOf,
  unicastMac,
} from './traits.ts';
