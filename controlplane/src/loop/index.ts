/** Reconcile loops: one pass after the other over each thing, woken, at a set time, and slowly. */
export { Alarms } from './alarms.ts';
export { Controller } from './controller.ts';
export { Looks } from './looks.ts';
export { OneByOne } from './one-by-one.ts';
export { resyncLater } from './resync.ts';
