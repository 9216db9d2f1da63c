/**
 * The in-band runner: erasure steps over block devices, and its session with the agent. The program
 * itself is `main.ts`; the exports here are for simulations and scenarios that build a runner of
 * their own parts.
 */

export { type ByteFilter, unpack } from '@rackwright/disk-image';
export { type ConfigResult, type RunnerConfig, readConfig } from './config.ts';
export { erasuresAtOnceMax } from './erase/on-devices.ts';
export { eraseDevices, eraseDevicesMetadata } from './erase/step.ts';
export { verifyErased } from './erase/verify-erased.ts';
export { linuxCommandRoots } from './linux/command-roots.ts';
export { linuxDevices } from './linux/devices.ts';
export { openDirect } from './linux/direct-region.ts';
export {
  efiVariablesFolder,
  mountEfiVariables,
  readEfiVariables,
  writeEfiVariables,
} from './linux/efi-variables.ts';
export { fileDisks } from './linux/file-disks.ts';
export { fileMachine } from './linux/file-machine.ts';
export { rereadPartitions, withImageDisk } from './linux/image-disk.ts';
export { linuxPrograms, type ProgramParts } from './linux/programs.ts';
export { unxz } from './linux/xz-filter.ts';
export {
  type BlockDevices,
  type DeviceAccess,
  DeviceError,
  type DeviceListing,
  type DeviceLoss,
  type HeldDevice,
  type NvmeEraseMode,
  type OpenRegion,
} from './machine/block-devices.ts';
export {
  type FileContent,
  FileError,
  type Filesystem,
  filesystems,
  type MachineFiles,
  type NumberedPartition,
} from './machine/files.ts';
export type { Machine, MachineHardware } from './machine/machine.ts';
export {
  operationVariable,
  type ProgramExit,
  type ProgramRequest,
  type Programs,
  type RunningProgram,
} from './program/program.ts';
export type { ImageDisk } from './provision/disk-writer.ts';
export type { ImageFile } from './provision/prepared-image.ts';
export {
  type InstalledDisk,
  type ProvisionParts,
  type ProvisionPlan,
  type ProvisionProgress,
  type ProvisionResult,
  provisionDisk,
} from './provision/provision.ts';
export { defaultImageWebLimits, patientLimits, webSource } from './provision/web-source.ts';
export { type RunnerParts, runRunner } from './runner.ts';
export { type AgentAddress, type AgentConnection, type AgentDialer } from './session/dialer.ts';
export {
  inspected,
  RunnerProtocol,
  type SessionEffect,
  type SessionEvent,
} from './session/protocol.ts';
export { type FinishedOperation, type RunnerRecord } from './session/record.ts';
export { type CommandParts, runCommand } from './steps/command.ts';
export { runFile } from './steps/file.ts';
export { interpreters, runScript, type ScriptParts } from './steps/script.ts';
export type { DeviceStage, Step, StepContext, StepResult } from './steps/step.ts';
export { devicesWithout, type LabCheck, labChecks, stepWithout } from './steps/without-checks.ts';
export { runnerVersion } from './version.ts';
