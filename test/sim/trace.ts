/** What happened, in order: hashed whole for comparing runs, the last lines kept for people. */
import { createHash } from 'node:crypto';
import type { Log } from '@rackwright/platform';
import { recordingLog } from '@rackwright/platform/testing';

export class Trace {
  readonly #hash = createHash('sha256');
  readonly #last: string[] = [];
  readonly #linesMax: number;

  constructor(linesMax: number) {
    this.#linesMax = linesMax;
  }

  line(atMs: number, text: string): void {
    const line = `${(atMs / 1000).toFixed(3).padStart(10)} ${text}`;
    this.#hash.update(`${line}\n`);
    if (this.#linesMax === 0) return;
    this.#last.push(line);
    if (this.#last.length > this.#linesMax) this.#last.shift();
  }

  /** A log whose lines become part of the trace. */
  log(name: string, nowMs: () => number): Log {
    return recordingLog(({ level, fields, message, error }) => {
      if (level === 'debug') return;
      const host = fields['host'] === undefined ? '' : ` ${fields['host']}`;
      const why = error instanceof Error ? `: ${error.name}: ${error.message}` : '';
      this.line(nowMs(), `${name} ${level}${host} ${message}${why}`);
    });
  }

  /** The hash so far; later lines still count. */
  hash(): string {
    return this.#hash.copy().digest('hex').slice(0, 16);
  }

  last(): readonly string[] {
    return this.#last;
  }
}
