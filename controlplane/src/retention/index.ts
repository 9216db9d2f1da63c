/** Removes records once nothing refers to them any more. */
export { startRetentionSweep } from './sweep.ts';
