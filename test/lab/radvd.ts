/**
 * The site's router announces itself. Without an announcement every iPXE waits 13 to 16 seconds for
 * one. It offers no way out (lifetime 0) and no addresses.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LabNetwork } from './netns.ts';
import { type Started, startProcess } from './processes.ts';
import type { Undo } from './undo.ts';

/** Starts radvd in the site's namespace. */
export function startRouter(undo: Undo, network: LabNetwork, folder: string): Started {
  const config = join(folder, 'radvd.conf');
  writeFileSync(
    config,
    [
      'interface site0 {',
      '  AdvSendAdvert on;',
      '  AdvDefaultLifetime 0;',
      '  MinRtrAdvInterval 3;',
      '  MaxRtrAdvInterval 4;',
      '  MinDelayBetweenRAs 3;',
      '};',
      '',
    ].join('\n'),
  );
  return startProcess(undo, {
    name: 'radvd',
    file: 'radvd',
    args: ['--nodaemon', '-C', config, '-p', join(folder, 'radvd.pid'), '-m', 'stderr'],
    logFile: join(folder, 'radvd.log'),
    namespace: network.siteNamespace,
  });
}
