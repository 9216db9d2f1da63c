/** Software machines: folders that a BMC switches on and off as processes. */
export {
  type BootSource,
  type MachineDescription,
  readDescription,
  writeDescription,
} from './description.ts';
export { type DiskPlan, describeDisk, diskBytes, holdsPattern, makeDisk } from './disks.ts';
export { type MachineHousing, SoftwareMachine } from './power.ts';
