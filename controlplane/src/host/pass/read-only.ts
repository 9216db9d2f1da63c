/** Values of a pass for functions that only read: the compiler refuses a change of them. */
import type { Duration, Timestamp } from '@bufbuild/protobuf/wkt';
import type {
  agent,
  BmcEndpoint,
  BmcIdentity,
  BootMedium,
  Claim,
  CleaningPolicy,
  DeletionPolicy,
  DeploySpec,
  Hold,
  PersonWord,
  RootDiskHints,
  Run,
  RunStep,
  SystemIdentity,
  store,
} from '@rackwright/messages';

type Leaf = string | number | boolean | bigint | undefined | Uint8Array | Timestamp | Duration;

/** Messages that are replaced as a whole: other messages take them as they are. */
type Whole =
  | agent.DevicePlan
  | agent.HostSign
  | BmcEndpoint
  | BmcIdentity
  | BootMedium
  | Claim
  | CleaningPolicy
  | DeletionPolicy
  | DeploySpec
  | Hold
  | PersonWord
  | RootDiskHints
  | store.DiskSpeed
  | store.PlannedErasure
  | store.UnprovedDevice
  | SystemIdentity;

/** The same value, read-only at every depth. */
export type DeepReadonly<T> = T extends Leaf | Whole
  ? T
  : { readonly [K in keyof T]: DeepReadonly<T[K]> };

export type RunView = DeepReadonly<Run>;

export type StepView = DeepReadonly<RunStep>;
