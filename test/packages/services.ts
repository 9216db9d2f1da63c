/** The services of the packages in a container, and how a person there speaks to them. */
import { readFileSync } from 'node:fs';
import { LAB_ADDRESS } from '../lab/netns.ts';
import { until } from '../lab/processes.ts';
import { OPERATORS_PORT } from '../lab/stack.ts';
import type { Container } from './container.ts';

export const SERVICES = ['rackwright-agent', 'rackwright-controlplane'] as const;
export type Service = (typeof SERVICES)[number];
export const START_WAIT_MS = 120_000;
export const SERVER = `${LAB_ADDRESS.agent}:${OPERATORS_PORT}`;
export const STATE = '/var/lib/rackwright';
/** What the README has operators export on the control plane's machine. */
export const OPERATOR = {
  RACKWRIGHT_SERVER: SERVER,
  RACKWRIGHT_TOKEN_FILE: `${STATE}/identity/admin.token`,
  RACKWRIGHT_CA_FILE: `${STATE}/identity/ca.pem`,
};

/** What systemd says of a unit. */
export async function property(container: Container, unit: string, name: string): Promise<string> {
  const args = ['systemctl', 'show', '--property', name, '--value', unit];
  return (await container.run(args)).trim();
}

/** Waits until the service has said that it is ready. */
export async function untilActive(container: Container, service: Service): Promise<void> {
  await until(
    `the start of ${service}`,
    START_WAIT_MS,
    async () => (await property(container, service, 'ActiveState')) === 'active',
  );
}

/**
 * The commands in a text for people, as it shows them: in blocks of lines that are indented by
 * three spaces, behind a "#" or not; a line that ends with a backslash goes on.
 */
export function commandsIn(text: string): string[][] {
  const blocks: string[][] = [];
  let isOpen = false;
  for (const line of text.replaceAll(/\\\n#? */g, '').split('\n')) {
    const command = /^#? {3}(\S.*)$/.exec(line)?.[1];
    if (command !== undefined && isOpen) blocks.at(-1)?.push(command);
    else if (command !== undefined) blocks.push([command]);
    isOpen = command !== undefined || (isOpen && /^#?$/.test(line));
  }
  return blocks;
}

/** The commands in a file that a package has brought, from a heading to the next one. */
export function commandsOf(container: Container, file: string, from = '', to = ''): string[][] {
  const text = readFileSync(container.path(file), 'utf8');
  const [start, end] = [text.indexOf(from), to === '' ? text.length : text.indexOf(to)];
  if (start < 0 || end < start) throw new Error(`${file} has no ${from} before ${to}`);
  return commandsIn(text.slice(start, end));
}
