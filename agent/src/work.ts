/**
 * What works on hosts: the operations, and the drivers of their BMCs. A sixth of the agent's code,
 * which is loaded when hosts are given addresses already.
 */
import { createBmcDriver } from './bmc-drivers.ts';
import type { CreateBmcDriver } from './governed-bmcs.ts';
import { createExecutor } from './operations/executor.ts';

export interface HostWork {
  readonly createExecutor: typeof createExecutor;
  readonly createBmcDriver: CreateBmcDriver;
}

export const work: HostWork = { createExecutor, createBmcDriver };
