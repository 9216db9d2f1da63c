/**
 * `node put-medium.main.ts FOLDER FILE`: puts a CD into the virtual drive of the machine in FOLDER,
 * which was started halted, and lets the machine go.
 */
import { tellQemu } from './qmp-command.ts';
import { insertMedium } from './virtual-drive.ts';

const [, , folder = '', file = ''] = process.argv;
try {
  await insertMedium({ folder }, file);
} finally {
  await tellQemu({ folder }, [{ execute: 'cont' }]);
}
