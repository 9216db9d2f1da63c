/** For tests: what every BmcDriver must do, and a BMC in memory to do it with. */
export { type ImitatedBmc, imitatedBmc, imitatedIpmitool } from './imitated-ipmitool.ts';
export { type BmcRig, bmcConformance, type ConformanceCase, type DeviceSide } from './suite.ts';
export { VirtualClock } from './virtual-clock.ts';
