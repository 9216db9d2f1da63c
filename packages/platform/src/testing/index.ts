/**
 * For tests: logs, disks that forget unsynced writes, waits without a clock, and which objects are
 * still referred to.
 */
export { forgetfulDisk, forgetfulLargeFiles } from './forgetful-disk.ts';
export { ForgetfulFiles } from './forgetful-files.ts';
export { quietLog } from './quiet-log.ts';
export { afterImmediates, afterMicrotasks } from './reactions.ts';
export { type LogLine, recordingLog } from './recording-log.ts';
export { References } from './references.ts';
