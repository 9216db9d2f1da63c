/** For tests: a log that nobody reads, and disks that forget unsynced writes. */
export { forgetfulDisk, forgetfulLargeFiles } from './forgetful-disk.ts';
export { ForgetfulFiles } from './forgetful-files.ts';
export { quietLog } from './quiet-log.ts';
