/** The status of a sanitize: what NVMe controllers report of it, as nvme-cli prints it. Pure. */

import type { OwnWork } from '../machine/block-devices.ts';

/** A device's report of its sanitize. Only `done` says that one has succeeded. */
export type SanitizeStatus =
  | { readonly kind: 'running'; readonly text: string }
  | { readonly kind: 'done'; readonly text: string }
  /** The device says that its last one failed. */
  | { readonly kind: 'failed'; readonly text: string }
  /** It says nothing of the kind. */
  | { readonly kind: 'unknown'; readonly text: string };

/** Why a device with this report may refuse to be read and written. */
export function ownWorkOf(status: SanitizeStatus): OwnWork | undefined {
  return status.kind === 'running' || status.kind === 'failed' ? status : undefined;
}

/** SSTAT bits 2:0 (NVMe 2.0 figure 290): 1 and 4 completed, 2 in progress, 3 failed. */
const stateBits = 0b111;
/** SPROG is a share of so much. */
const progressMax = 65_536;

/** `log`: the output of `nvme sanitize-log --output-format=json`, parsed. */
export function parseNvmeSanitize(log: unknown): SanitizeStatus {
  const page = pageOf(log);
  const state = stateOf(page?.['sstat']);
  switch (state) {
    case 1:
    case 4:
      return { kind: 'done', text: `sanitize: completed, state ${state}` };
    case 2: {
      const progress = typeof page?.['sprog'] === 'number' ? page['sprog'] : 0;
      const percent = Math.floor((100 * progress) / progressMax);
      return { kind: 'running', text: `a sanitize is in progress (${percent} %)` };
    }
    case 3:
      return { kind: 'failed', text: 'the last sanitize has failed' };
    default:
      return { kind: 'unknown', text: `sanitize: no status (${state ?? 'no answer'})` };
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

/** The log is wrapped in an object that is named by the device. */
function pageOf(log: unknown): JsonObject | undefined {
  if (!isObject(log) || 'sstat' in log) return isObject(log) ? log : undefined;
  return Object.values(log).find(isObject);
}

/**
 * nvme-cli prints the fields of SSTAT as an object. One of them is the state with its meaning,
 * "(2) Sanitize in Progress.", under the name "status". Some releases name it by that meaning.
 */
function stateOf(status: unknown): number | undefined {
  if (typeof status === 'number') return status & stateBits;
  if (!isObject(status)) return undefined;
  const states = Object.values(status).flatMap((value) => {
    const [, state] = (typeof value === 'string' && /^\((\d)\)/.exec(value)) || [];
    return state === undefined ? [] : [Number(state)];
  });
  return states.length === 1 ? states[0] : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
