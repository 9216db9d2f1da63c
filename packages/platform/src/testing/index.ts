/** For tests of what keeps files: a disk that forgets what was not synced. */
export { forgetfulDisk, forgetfulLargeFiles } from './forgetful-disk.ts';
export { ForgetfulFiles } from './forgetful-files.ts';
