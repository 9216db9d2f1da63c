/** For tests: the requirements of every BmcDriver, and a BMC in memory for them. */
export { type ImitatedBmc, imitatedBmc, imitatedIpmitool } from './imitated-ipmitool.ts';
export { type BmcRig, bmcConformance, type ConformanceCase, type DeviceSide } from './suite.ts';
export { VirtualClock } from './virtual-clock.ts';
