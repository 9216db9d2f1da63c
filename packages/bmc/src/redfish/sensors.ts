/**
 * Sensors of a machine over Redfish: of its chassis, by `Thermal` and `Power` (DSP0268, two answers
 * for all of them), or by the collection `Sensors`, which takes their place and costs one for each.
 */
import { type BmcResult, failed, ok } from '../driver.ts';
import { type BmcSensor, type BmcSensors, type SensorKind, sensorsMax } from '../readings.ts';
import type { Get, Resource } from './conversation.ts';
import { healthOf, levelOf } from './health.ts';
import { type JsonObject, numberAt, objectAt, objectsAt, pathOf, pathsAt, textAt } from './json.ts';
import { listedIn } from './pages.ts';

/** Chassis of one system that are asked. */
const chassisMax = 4;
/** Sensors that are read one by one. */
const singleSensorsMax = 64;

export async function readSensors(system: Resource, get: Get): Promise<BmcResult<BmcSensors>> {
  const health = healthOf(system);
  const reader = new SensorReader(get);
  const paths = pathsAt(objectAt(system.body, 'Links'), 'Chassis');
  for (const path of paths.slice(0, chassisMax)) {
    const stopped = await reader.chassis(path);
    if (stopped !== undefined) return stopped;
  }
  if (!reader.offered) return failed('unsupported', 'the BMC offers no sensors of the machine');
  const { sensors } = reader;
  const complete = reader.complete && paths.length <= chassisMax && sensors.length <= sensorsMax;
  return ok({
    ...(health === undefined ? {} : { health }),
    sensors: sensors.slice(0, sensorsMax),
    complete,
  });
}

type FailedResult = Exclude<BmcResult<never>, { kind: 'ok' }>;

class SensorReader {
  readonly sensors: BmcSensor[] = [];
  complete = true;
  /** Some chassis has sensors, whether or not they could be read. */
  offered = false;
  readonly #get: Get;

  constructor(get: Get) {
    this.#get = get;
  }

  /** Undefined: go on. */
  async chassis(path: string): Promise<FailedResult | undefined> {
    const found = await this.#get(path);
    if (found.kind === 'transient') return found;
    if (found.kind === 'failed') {
      this.complete = false;
      return undefined;
    }
    const { body } = found.value;
    const before = this.sensors.length;
    for (const [key, read] of [
      ['Thermal', thermalSensors],
      ['Power', powerSensors],
    ] as const) {
      const at = pathOf(objectAt(body, key));
      if (at === undefined) continue;
      this.offered = true;
      const resource = await this.#get(at);
      if (resource.kind === 'transient') return resource;
      if (resource.kind === 'ok') this.sensors.push(...read(resource.value.body));
      else this.complete = false;
    }
    const all = pathOf(objectAt(body, 'Sensors'));
    return this.sensors.length > before || all === undefined ? undefined : this.#each(all);
  }

  async #each(path: string): Promise<FailedResult | undefined> {
    this.offered = true;
    const listed = await listedIn(path, this.#get, singleSensorsMax);
    if ('kind' in listed) {
      this.complete = false;
      return listed.kind === 'transient' ? listed : undefined;
    }
    if (listed.hasMore) this.complete = false;
    for (const member of listed.paths) {
      const sensor = await this.#get(member);
      if (sensor.kind === 'transient') return sensor;
      if (sensor.kind === 'ok') this.sensors.push(...singleSensor(sensor.value.body));
      else this.complete = false;
    }
    return undefined;
  }
}

function thermalSensors(body: JsonObject): readonly BmcSensor[] {
  return [
    ...objectsAt(body, 'Temperatures').flatMap((one) =>
      sensor(one, 'temperature', 'Cel', numberAt(one, 'ReadingCelsius')),
    ),
    ...objectsAt(body, 'Fans').flatMap((one) =>
      sensor(one, 'fan', textAt(one, 'ReadingUnits') ?? '', numberAt(one, 'Reading')),
    ),
  ];
}

function powerSensors(body: JsonObject): readonly BmcSensor[] {
  return [
    ...objectsAt(body, 'Voltages').flatMap((one) =>
      sensor(one, 'voltage', 'V', numberAt(one, 'ReadingVolts')),
    ),
    ...objectsAt(body, 'PowerControl').flatMap((one) =>
      sensor(one, 'power', 'W', numberAt(one, 'PowerConsumedWatts')),
    ),
    ...objectsAt(body, 'PowerSupplies').flatMap((one) =>
      sensor(one, 'power', 'W', numberAt(one, 'LastPowerOutputWatts')),
    ),
  ];
}

/** DSP0268 `ReadingUnits` of Sensor, by UCUM. */
const kindOfUnit: Readonly<Record<string, SensorKind>> = {
  Cel: 'temperature',
  RPM: 'fan',
  '{rev}/min': 'fan',
  V: 'voltage',
  A: 'current',
  W: 'power',
};

function singleSensor(body: JsonObject): readonly BmcSensor[] {
  const unit = textAt(body, 'ReadingUnits') ?? '';
  const kind = Object.hasOwn(kindOfUnit, unit) ? kindOfUnit[unit] : undefined;
  return sensor(body, kind ?? 'other', unit, numberAt(body, 'Reading'));
}

/** An empty socket has no sensor. */
function sensor(
  body: JsonObject,
  kind: SensorKind,
  unit: string,
  reading: number | undefined,
): readonly BmcSensor[] {
  const name = textAt(body, 'Name') ?? textAt(body, 'FanName') ?? textAt(body, 'MemberId');
  const state = textAt(objectAt(body, 'Status'), 'State');
  if (name === undefined || state === 'Absent') return [];
  const health = levelOf(body);
  return [
    {
      name,
      kind,
      ...(reading === undefined ? {} : { reading }),
      unit,
      ...(health === undefined ? {} : { health }),
    },
  ];
}
