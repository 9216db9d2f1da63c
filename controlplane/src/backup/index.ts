/** Backup and restore of a whole control plane. */
export { backupCommand, restoreCommand } from './command.ts';
export { openCopyService } from './copy-service.ts';
export { BackupError } from './manifest.ts';
export { settleRestoration } from './staging.ts';
