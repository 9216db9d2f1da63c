/** Backup and restore of a whole control plane. */
export { backupCommand, restoreCommand } from './command.ts';
export { openDesk } from './desk.ts';
export { BackupError } from './manifest.ts';
export { settleRestoration } from './staging.ts';
