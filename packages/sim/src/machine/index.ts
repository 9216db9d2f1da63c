/** Software machines: folders that a BMC switches on and off as processes. */
export {
  type BootSource,
  type MachineDescription,
  readDescription,
  writeDescription,
} from './description.ts';
export {
  type DiskPlan,
  describeDisk,
  diskBytes,
  holdsImage,
  holdsPattern,
  makeDisk,
  sizeOfDisk,
} from './disks.ts';
export { runningSystem } from './first-boot.ts';
export { type MachineHousing, SoftwareMachine } from './power.ts';
export { type FoundSystem, findSystem, type SystemName, systemImage } from './system.ts';
