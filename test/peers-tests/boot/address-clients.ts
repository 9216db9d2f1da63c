/** DHCP clients that others wrote, each in its namespace, and what they say that they got. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram, type Started, startProcess, tryProgram, within } from '../../lab/processes.ts';
import type { Undo } from '../../lab/undo.ts';

/** What a client reported last, by the names that it uses in the environment of its script. */
export type Report = Readonly<Record<string, string>>;

/** Runs a script at each event that puts the address on eth0 and writes its environment down. */
export class AddressClient {
  readonly namespace: string;
  readonly #undo: Undo;
  readonly #folder: string;
  readonly #name: string;
  readonly #script: string;

  constructor(undo: Undo, folder: string, name: string, namespace: string) {
    this.namespace = namespace;
    this.#undo = undo;
    this.#folder = folder;
    this.#name = name;
    this.#script = this.#path('script');
    const reports = this.#path('reports');
    writeFileSync(reports, '');
    // dhclient names the event in $reason, udhcpc in $1.
    const lines = [
      '#!/bin/sh',
      'event="${reason:-$1}"',
      'address="${new_ip_address:-$ip}"',
      'case "$event" in',
      '  BOUND|REBOOT|bound) ip addr flush dev eth0; ip addr add "$address/24" dev eth0 ;;',
      '  PREINIT|EXPIRE|RELEASE|STOP|deconfig) ip addr flush dev eth0 ;;',
      'esac',
      `{ echo "event=$event"; env; echo; } >> ${reports}`,
    ];
    writeFileSync(this.#script, `${lines.join('\n')}\n`, { mode: 0o755 });
  }

  /** dhclient until it has a lease or gave up; what it printed. */
  async dhclient(path: string, options: readonly string[] = [], conf = ''): Promise<string> {
    const configuration = this.#path('dhclient.conf');
    writeFileSync(configuration, `timeout 10;\ninitial-interval 1;\n${conf}\n`);
    const files = ['-lf', this.#path('leases'), '-pf', this.#path('pid'), '-cf', configuration];
    const args = ['-4', '-1', '-v', ...options, '-sf', this.#script, ...files, 'eth0'];
    const { out, err } = await tryProgram(within(this.namespace, [path, ...args]), {});
    return `${out}${err}`;
  }

  /** dhclient's file of leases, to read or to replace. */
  get leaseFile(): string {
    return this.#path('leases');
  }

  /** udhcpc, which stays until it is stopped. */
  udhcpc(busybox: string, options: readonly string[] = []): Started {
    const logFile = this.#path('udhcpc.log');
    writeFileSync(logFile, '');
    const args = ['udhcpc', '-i', 'eth0', '-f', '-t', '8', '-T', '1', '-s', this.#script];
    return startProcess(this.#undo, {
      name: `udhcpc ${this.#name}`,
      file: busybox,
      args: [...args, ...options],
      logFile,
      namespace: this.namespace,
    });
  }

  /** The reports of one kind of event, oldest first. */
  reports(event: string): Report[] {
    const reports = reportsIn(readFileSync(this.#path('reports'), 'utf8'));
    return reports.filter((report) => report['event'] === event);
  }

  async addresses(): Promise<string[]> {
    const text = await runProgram('ip', ['-n', this.namespace, '-4', '-o', 'addr', 'show', 'eth0']);
    return [...text.matchAll(/inet ([\d.]+)/g)].map(([, address = '']) => address);
  }

  #path(suffix: string): string {
    return join(this.#folder, `${this.#name}.${suffix}`);
  }
}

/** What the scripts wrote down to its end: each report ends with an empty line. */
export function reportsIn(text: string): Report[] {
  // The script of a client that runs on may be in the middle of its last one.
  return text.split('\n\n').slice(0, -1).map(reportOf);
}

function reportOf(block: string): Report {
  const pairs = block.split('\n').map((line) => {
    const at = line.indexOf('=');
    return [line.slice(0, at), line.slice(at + 1)] as const;
  });
  return Object.fromEntries(pairs);
}
