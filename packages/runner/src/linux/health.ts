/** A device's report of its own health, by `smartctl --json`. The parser is pure. */
import type { HealthFacts } from '@rackwright/erasure';
import { type Exec, parsedJson } from '@rackwright/platform';
import { toolOutput } from './tool.ts';

const askTimeoutMs = 20_000;
/** SMART attributes by their number, as most makers use them. */
const reallocatedSectors = 5;
const pendingSectors = 197;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Undefined when the device keeps no health log or the text is no answer of smartctl. Missing
 * values are left out; a value that is no whole number counts as missing.
 */
export function parseHealth(text: string): HealthFacts | undefined {
  const answer = jsonIn(text);
  if (answer === undefined) return undefined;
  const nvme = fieldsOf(answer['nvme_smart_health_information_log']);
  const passed = fieldsOf(answer['smart_status'])?.['passed'];
  const facts = {
    powerOnHours: countOf(fieldsOf(answer['power_on_time'])?.['hours']),
    temperatureCelsius: wholeOf(fieldsOf(answer['temperature'])?.['current']),
    reallocatedSectors:
      rawAttribute(answer, reallocatedSectors) ?? countOf(answer['scsi_grown_defect_list']),
    pendingSectors: rawAttribute(answer, pendingSectors),
    mediaErrors: countOf(nvme?.['media_errors']),
    percentUsed: countOf(nvme?.['percentage_used']),
  };
  const known = Object.entries(facts).filter(([, value]) => value !== undefined);
  if (known.length === 0 && typeof passed !== 'boolean') return undefined;
  return {
    ...(Object.fromEntries(known) as HealthFacts),
    ...(typeof passed === 'boolean' ? { passed } : {}),
  };
}

function rawAttribute(answer: Fields, id: number): number | undefined {
  const table = fieldsOf(answer['ata_smart_attributes'])?.['table'];
  if (!Array.isArray(table)) return undefined;
  const row = table.map(fieldsOf).find((each) => each?.['id'] === id);
  return countOf(fieldsOf(row?.['raw'])?.['value']);
}

/** smartctl may print text before and after the object. */
function jsonIn(text: string): Fields | undefined {
  const from = text.indexOf('{');
  const to = text.lastIndexOf('}');
  if (from < 0 || to < from) return undefined;
  return fieldsOf(parsedJson(text.slice(from, to + 1)));
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
}

function wholeOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

function countOf(value: unknown): number | undefined {
  const whole = wholeOf(value);
  return whole !== undefined && whole >= 0 ? whole : undefined;
}

/** `path`: of the disk or of the NVMe controller. */
export async function readHealth(exec: Exec, path: string): Promise<HealthFacts | undefined> {
  const args = ['--json=c', '--health', '--attributes', path];
  return parseHealth(await toolOutput(exec, 'smartctl', args, askTimeoutMs));
}
