/**
 * Reconcile loops: one pass after the other over each thing, woken, at a set time, and by resync.
 */
export { Alarms } from './alarms.ts';
export { Controller, type Passes } from './controller.ts';
export type { Lane } from './lanes.ts';
