/**
 * Reads ipmitool's output of sensors and of the event log, in its comma-separated form with `-v`
 * (ipmitool 1.8.19). Pure. An unknown line is left out, and the list says so.
 */
import {
  type BmcLog,
  type BmcLogEntry,
  type BmcSensor,
  type BmcSensors,
  type HardwareHealth,
  type HealthLevel,
  type SensorKind,
  sensorsMax,
} from '../readings.ts';

const textCharactersMax = 128;

/** IPMI 2.0 table 42-3, in ipmitool's words. */
const kinds: readonly (readonly [RegExp, SensorKind])[] = [
  [/^temperature$/i, 'temperature'],
  [/^fan$/i, 'fan'],
  [/^voltage$/i, 'voltage'],
  [/^current$/i, 'current'],
  [/^power (supply|unit)$/i, 'power'],
];

/** Thresholds (IPMI 2.0 §35.14): "Upper Non-Critical" is a warning. */
function healthOf(status: string): HealthLevel | undefined {
  if (/^ok$/i.test(status)) return 'ok';
  if (/non-critical$/i.test(status)) return 'warning';
  return /(critical|non-recoverable)$/i.test(status) ? 'critical' : undefined;
}

/**
 * `sdr list full`: name, reading, unit, status, entity, its name, type, and limits. A reading that
 * is no number is left out.
 */
export function sensorsOf(stdout: string): BmcSensors {
  const lines = stdout.split('\n').filter((line) => line.trim() !== '');
  const sensors: BmcSensor[] = [];
  for (const line of lines.slice(0, sensorsMax)) {
    const fields = line.split(',').map(printable);
    const [name = '', reading = '', unit = '', status = '', , , type = ''] = fields;
    if (name === '' || fields.length < 4) continue;
    const health = healthOf(status);
    const number = /^-?\d+(\.\d+)?$/.test(reading) ? Number(reading) : undefined;
    sensors.push({
      name,
      kind: kinds.find(([pattern]) => pattern.test(type))?.[1] ?? 'other',
      ...(number === undefined ? {} : { reading: number }),
      unit,
      ...(health === undefined ? {} : { health }),
    });
  }
  return { sensors, complete: sensors.length === lines.length };
}

/** `sel elist`: id, date, time, sensor, event, asserted or deasserted. The oldest is first. */
export function logOf(stdout: string, entriesMax: number): BmcLog {
  const lines = stdout.split('\n').filter((line) => /^\s*[0-9a-f]+,/i.test(line));
  const entries = lines.slice(-entriesMax).map((line): BmcLogEntry => {
    const [id = '', date = '', time = '', sensor = '', ...event] = line.split(',').map(printable);
    const message = [sensor, ...event].filter((text) => text !== '').join(', ');
    const severity = severityOf(event);
    return {
      id,
      time: `${date} ${time}`.trim(),
      ...(severity === undefined ? {} : { severity }),
      message,
    };
  });
  return { entries: entries.toReversed(), complete: true };
}

/** Of a threshold that was crossed; only their maker knows the meaning of other events. */
function severityOf([event = '', direction = '']: readonly string[]): HealthLevel | undefined {
  if (/^deassert/i.test(direction)) return 'ok';
  if (/^(upper|lower) non-critical/i.test(event)) return 'warning';
  return /^(upper|lower) (critical|non-recoverable)/i.test(event) ? 'critical' : undefined;
}

/** Get Chassis Status (§28.2): bits of the first byte, and of the third, that report a fault. */
const faults: readonly (readonly [byte: 0 | 2, bit: number, text: string])[] = [
  [0, 1, 'power overload'],
  [0, 3, 'power fault'],
  [0, 4, 'power control fault'],
  [2, 2, 'drive fault'],
  [2, 3, 'cooling or fan fault'],
];

/** Get Chassis Status; undefined: no such answer. */
export function chassisHealth(bytes: readonly number[]): HardwareHealth | undefined {
  if (bytes.length < 3) return undefined;
  const found = faults.filter(([byte, bit]) => ((bytes[byte] ?? 0) >> bit) & 1);
  const message = found.map(([, , text]) => text).join(', ');
  return { level: found.length === 0 ? 'ok' : 'critical', text: message };
}

/** Get Device ID (§20.1): major revision in bits 6:0 of byte 3, minor as BCD in byte 4. */
export function firmwareVersion(bytes: readonly number[]): string | undefined {
  const [, , major, minor] = bytes;
  if (major === undefined || minor === undefined) return undefined;
  return `${major & 0x7f}.${minor.toString(16).padStart(2, '0')}`;
}

function printable(text: string): string {
  return text
    .replaceAll(/\p{Cc}/gu, '')
    .trim()
    .slice(0, textCharactersMax);
}
