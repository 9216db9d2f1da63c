/** What is let go once nothing refers to it any more. */
export { startRetentionSweep } from './sweep.ts';
