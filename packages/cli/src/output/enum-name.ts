/** Names of enum values as people write them: RUN_KIND_CLEAN is "clean". */
import {
  ArgumentTypeSchema,
  Authority_StageSchema,
  BmcProtocolSchema,
  BootMethodSchema,
  CleaningMethodSchema,
  ErasureLevelSchema,
  enumWord,
  FailingDisksSchema,
  HiddenAreasSchema,
  HoldScopeSchema,
  HostGoalSchema,
  HostPowerSchema,
  HostStateSchema,
  PowerCycleCheckSchema,
  PowerMismatchPolicySchema,
  RackFaultTypeSchema,
  RaidDrivesSchema,
  RerunClassSchema,
  RoleSchema,
  RolloutSlotStateSchema,
  RunKindSchema,
  RunOutcomeSchema,
  ShutdownModeSchema,
  StepStateSchema,
  UsbDisksSchema,
  WorkflowRunStateSchema,
} from '@rackwright/messages';

const enums = {
  AuthorityStage: Authority_StageSchema,
  BmcProtocol: BmcProtocolSchema,
  BootMethod: BootMethodSchema,
  CleaningMethod: CleaningMethodSchema,
  ErasureLevel: ErasureLevelSchema,
  HiddenAreas: HiddenAreasSchema,
  HoldScope: HoldScopeSchema,
  HostGoal: HostGoalSchema,
  HostPower: HostPowerSchema,
  HostState: HostStateSchema,
  PowerCycleCheck: PowerCycleCheckSchema,
  PowerMismatchPolicy: PowerMismatchPolicySchema,
  RackFaultType: RackFaultTypeSchema,
  ArgumentType: ArgumentTypeSchema,
  RerunClass: RerunClassSchema,
  Role: RoleSchema,
  RolloutSlotState: RolloutSlotStateSchema,
  RunKind: RunKindSchema,
  RunOutcome: RunOutcomeSchema,
  ShutdownMode: ShutdownModeSchema,
  StepState: StepStateSchema,
  RaidDrives: RaidDrivesSchema,
  FailingDisks: FailingDisksSchema,
  UsbDisks: UsbDisksSchema,
  WorkflowRunState: WorkflowRunStateSchema,
} as const;

/** The value's name in lower case; '' for 0 (unspecified), the number for one we do not know. */
export function enumName(name: keyof typeof enums, value: number): string {
  return value === 0 ? '' : (enumWord(enums[name], value) ?? String(value));
}

/** The value that a person means by `text`; undefined when there is none. */
export function enumValue(name: keyof typeof enums, text: string): number | undefined {
  return enums[name].values.find(({ number }) => number !== 0 && enumName(name, number) === text)
    ?.number;
}
