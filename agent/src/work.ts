/**
 * What works on hosts: the operations, and the drivers of their BMCs. Loaded late: a sixth of the
 * agent's code, needed only after DHCP answers.
 */
import { createBmcDriver } from './bmc-drivers.ts';
import type { CreateBmcDriver } from './governed-bmcs.ts';
import { createExecutor } from './operations/executor.ts';

export interface HostWork {
  readonly createExecutor: typeof createExecutor;
  readonly createBmcDriver: CreateBmcDriver;
}

export const work: HostWork = { createExecutor, createBmcDriver };
