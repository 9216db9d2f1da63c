/**
 * What the simulated BMC manages beside power: sensors, entries of the event log, the lamp, the
 * list of firmware, its own restart (schemas: DMTF DSP0268, what clients read of them).
 */
import type { RedfishJsonObject } from './messages.ts';
import type {
  RedfishFirmware,
  RedfishHabits,
  RedfishHealth,
  RedfishSensor,
  RedfishSensors,
} from './options.ts';
import { collection, link, resource } from './shapes.ts';
import { Updates } from './updates.ts';

export const root = '/redfish/v1';
export const chassisPath = `${root}/Chassis/1`;
export const bmcPath = `${root}/Managers/1`;
export const bmcResetPath = `${bmcPath}/Actions/Manager.Reset`;
export const updatePath = `${root}/UpdateService`;
export const logPath = `${bmcPath}/LogServices/SEL`;

export interface ManagedState {
  readonly habits: RedfishHabits;
  readonly sensors: RedfishSensors;
  readonly health: RedfishHealth;
  readonly firmware: readonly RedfishFirmware[];
  readonly isLit: boolean;
  /** Entries of the machine's event log, which the BMC keeps. */
  readonly logEntries: number;
  /** When the BMC was started last. */
  readonly startedAt: string;
}

/** Undefined: there is no such resource. */
export function managedAt(path: string, state: ManagedState): RedfishJsonObject | undefined {
  switch (path) {
    case `${chassisPath}/Thermal`:
      return state.habits.sensorsIn === 'thermal' ? thermal(path, state.sensors) : undefined;
    case `${chassisPath}/Sensors`:
      return state.habits.sensorsIn === 'collection' ? sensorList(path, state) : undefined;
    case `${logPath}/Entries`:
      return logEntries(path, state);
    case updatePath:
      return {
        ...resource('UpdateService.v1_8_0.UpdateService', path, 'UpdateService', 'Updates'),
        ServiceEnabled: true,
        FirmwareInventory: link(`${path}/FirmwareInventory`),
        ...Updates.service(),
      };
    case `${updatePath}/FirmwareInventory`:
      return collection(
        'SoftwareInventory',
        path,
        state.firmware.map(({ id }) => `${path}/${id}`),
      );
    default:
      return memberAt(path, state);
  }
}

function memberAt(path: string, state: ManagedState): RedfishJsonObject | undefined {
  const parts = path.split('/');
  const [parent, id = ''] = [parts.slice(0, -1).join('/'), parts.at(-1)];
  switch (parent) {
    case `${chassisPath}/Sensors`:
      return state.habits.sensorsIn === 'collection' ? sensorAt(path, id, state) : undefined;
    case `${logPath}/Entries`:
      return logEntry(path, Number(id), state.logEntries);
    case `${updatePath}/FirmwareInventory`:
      return firmwareAt(path, id, state.firmware);
    default:
      return undefined;
  }
}

/** What a chassis says of its sensors and its lamp. */
export function chassisParts(state: ManagedState): RedfishJsonObject {
  const { sensorsIn } = state.habits;
  return {
    ...(sensorsIn === 'thermal' ? { Thermal: link(`${chassisPath}/Thermal`) } : {}),
    ...(sensorsIn === 'collection' ? { Sensors: link(`${chassisPath}/Sensors`) } : {}),
    ...lamp(state),
  };
}

function lamp({ habits, isLit }: ManagedState): RedfishJsonObject {
  switch (habits.indicator) {
    case 'LocationIndicatorActive':
      return { LocationIndicatorActive: isLit };
    case 'IndicatorLED':
      return { IndicatorLED: isLit ? 'Lit' : 'Off' };
    case undefined:
      return {};
  }
}

/** Whether a PATCH of the chassis lights the lamp; undefined: the request is invalid. */
export function requestedIndicatorState(
  body: RedfishJsonObject,
  habits: RedfishHabits,
): boolean | undefined {
  const [key, ...others] = Object.keys(body);
  if (key === undefined || key !== habits.indicator || others.length > 0) return undefined;
  const value = body[key];
  if (habits.indicator === 'LocationIndicatorActive') {
    return typeof value === 'boolean' ? value : undefined;
  }
  return value === 'Lit' || value === 'Off' ? value === 'Lit' : undefined;
}

function thermal(
  path: string,
  { temperatures = [], fans = [] }: RedfishSensors,
): RedfishJsonObject {
  return {
    ...resource('Thermal.v1_6_0.Thermal', path, 'Thermal', 'Thermal'),
    Temperatures: temperatures.map((one, at) => ({
      ...shown(one, at),
      ReadingCelsius: one.reading,
    })),
    Fans: fans.map((one, at) => ({ ...shown(one, at), Reading: one.reading, ReadingUnits: 'RPM' })),
  };
}

function shown({ name, health = 'OK' }: RedfishSensor, at: number): RedfishJsonObject {
  return { MemberId: `${at}`, Name: name, Status: { State: 'Enabled', Health: health } };
}

function measured({ temperatures = [], fans = [] }: RedfishSensors) {
  return [
    ...temperatures.map((one) => ({ ...one, unit: 'Cel' })),
    ...fans.map((one) => ({ ...one, unit: '{rev}/min' })),
  ];
}

function sensorList(path: string, { sensors }: ManagedState): RedfishJsonObject {
  const members = measured(sensors).map((_, at) => `${path}/${at + 1}`);
  return collection('Sensor', path, members);
}

function sensorAt(
  path: string,
  id: string,
  { sensors }: ManagedState,
): RedfishJsonObject | undefined {
  const found = measured(sensors)[Number(id) - 1];
  if (found === undefined) return undefined;
  const { name, reading, unit, health = 'OK' } = found;
  return {
    ...resource('Sensor.v1_6_0.Sensor', path, id, name),
    Reading: reading,
    ReadingUnits: unit,
    Status: { State: 'Enabled', Health: health },
  };
}

function logEntries(path: string, { habits, logEntries: count }: ManagedState): RedfishJsonObject {
  const ids = Array.from({ length: count }, (_, at) => at + 1);
  const order = habits.logBeginsWith === 'oldest' ? ids : ids.toReversed();
  const list = collection(
    'LogEntry',
    path,
    order.map((id) => `${path}/${id}`),
  );
  if (habits.logEntriesAre === 'references') return list;
  const entries = order.map((id) => logEntry(`${path}/${id}`, id, count));
  return { ...list, Members: entries.filter((entry) => entry !== undefined) };
}

/** Entry N was made in the minute N of a day. */
function logEntry(path: string, id: number, count: number): RedfishJsonObject | undefined {
  if (!Number.isInteger(id) || id < 1 || id > count) return undefined;
  const [hour, minute] = [Math.floor(id / 60) % 24, id % 60].map((n) => `${n}`.padStart(2, '0'));
  return {
    ...resource('LogEntry.v1_9_0.LogEntry', path, `${id}`, `Entry ${id}`),
    EntryType: 'SEL',
    Created: `2026-11-27T${hour}:${minute}:00Z`,
    Severity: id % 3 === 0 ? 'Critical' : 'OK',
    Message: `event ${id}`,
  };
}

function firmwareAt(
  path: string,
  id: string,
  firmware: readonly RedfishFirmware[],
): RedfishJsonObject | undefined {
  const found = firmware.find((one) => one.id === id);
  if (found === undefined) return undefined;
  return {
    ...resource('SoftwareInventory.v1_5_0.SoftwareInventory', path, id, `${id} firmware`),
    Version: found.version,
    Updateable: true,
  };
}
