/**
 * The site's router announces itself. Without an announcement every iPXE waits 13 to 16 seconds for
 * one. It offers no way out (lifetime 0) and no addresses.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Started, startProcess } from './processes.ts';
import type { Undo } from './undo.ts';

/** Where a router announces itself. */
export interface RouterPlace {
  readonly namespace: string;
  readonly interface: string;
  /** For its files. */
  readonly folder: string;
  /** Says that this network is on the link, and that its addresses come by DHCPv6. */
  readonly managedPrefix?: string;
}

/** Starts radvd in that namespace. */
export function startRouter(undo: Undo, place: RouterPlace): Started {
  const { namespace, interface: name, folder, managedPrefix } = place;
  const file = (suffix: string): string => join(folder, `radvd-${name}.${suffix}`);
  const config = file('conf');
  writeFileSync(
    config,
    [
      `interface ${name} {`,
      '  AdvSendAdvert on;',
      '  AdvDefaultLifetime 0;',
      '  MinRtrAdvInterval 3;',
      '  MaxRtrAdvInterval 4;',
      '  MinDelayBetweenRAs 3;',
      ...(managedPrefix === undefined ? [] : managed(managedPrefix)),
      '};',
      '',
    ].join('\n'),
  );
  return startProcess(undo, {
    name: 'radvd',
    file: 'radvd',
    args: ['--nodaemon', '-C', config, '-p', file('pid'), '-m', 'stderr'],
    logFile: file('log'),
    namespace,
  });
}

function managed(prefix: string): string[] {
  const flags = ['  AdvManagedFlag on;', '  AdvOtherConfigFlag on;'];
  return [...flags, `  prefix ${prefix} {`, '    AdvOnLink on;', '    AdvAutonomous off;', '  };'];
}
