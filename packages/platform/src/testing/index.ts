/** For tests: a log that nobody reads, and disks that forget what was not synced. */
export { forgetfulDisk, forgetfulLargeFiles } from './forgetful-disk.ts';
export { ForgetfulFiles } from './forgetful-files.ts';
export { quietLog } from './quiet-log.ts';
