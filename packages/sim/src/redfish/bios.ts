/**
 * Settings of the simulated firmware (DSP0268: Bios, AttributeRegistry, BootOption). A setting
 * waits until the machine is switched on.
 */
import type { Json, RedfishJsonObject } from './messages.ts';
import type { RedfishBios, RedfishFault, RedfishHabits } from './options.ts';
import { collection, link, resource } from './shapes.ts';

const root = '/redfish/v1';
const systemPath = `${root}/Systems/1`;
export const biosPath = `${systemPath}/Bios`;
export const biosSettingsPath = `${biosPath}/Settings`;
export const systemSettingsPath = `${systemPath}/Settings`;
const bootOptionsPath = `${systemPath}/BootOptions`;
export const registriesPath = `${root}/Registries`;
const registryName = 'BiosAttributeRegistrySim.v1_0_0';
const registryPath = `${registriesPath}/${registryName}.json`;

type Values = Record<string, Json>;

/** Why a PATCH is refused: a message of DMTF's Base registry, and words. */
export interface RefusedPatch {
  readonly key: string;
  readonly text: string;
}

export class BiosPatches {
  readonly #bios: RedfishBios | undefined;
  readonly #habits: RedfishHabits;
  #values: Values;
  #pending: Values = {};
  #bootOrder: readonly string[];
  #pendingOrder: readonly string[] | undefined;

  constructor(bios: RedfishBios | undefined, habits: RedfishHabits) {
    this.#bios = bios;
    this.#habits = habits;
    this.#values = { ...bios?.attributes };
    this.#bootOrder = (bios?.bootOptions ?? []).map(({ id }) => id);
  }

  values(): Readonly<Values> {
    return this.#values;
  }

  bootOrder(): readonly string[] {
    return this.#bootOrder;
  }

  /** The firmware takes what waits. */
  boot(fault: RedfishFault): void {
    if (fault.kind === 'settingsStayPending') return;
    for (const [name, value] of Object.entries(this.#pending)) {
      if (fault.kind === 'biosIgnores' && fault.attribute === name) continue;
      this.#values[name] = value;
    }
    if (fault.kind === 'biosDefaults') {
      this.#values[fault.attribute] = this.#bios?.attributes[fault.attribute] ?? null;
    }
    this.#pending = {};
    this.#bootOrder = this.#pendingOrder ?? this.#bootOrder;
    this.#pendingOrder = undefined;
  }

  /** A PATCH of the attributes that are to hold after the next boot. */
  patchBios(body: RedfishJsonObject): RefusedPatch | undefined {
    const wanted = body['Attributes'];
    if (typeof wanted !== 'object' || wanted === null || Array.isArray(wanted)) {
      return { key: 'PropertyMissing', text: 'Attributes is missing' };
    }
    for (const [name, value] of Object.entries(wanted as RedfishJsonObject)) {
      const now = this.#values[name];
      if (now === undefined) return { key: 'PropertyUnknown', text: `${name} is unknown` };
      if (typeof now !== typeof value) {
        return { key: 'PropertyValueTypeError', text: `${name} is no ${typeof now}` };
      }
    }
    this.#pending = { ...this.#pending, ...(wanted as Values) };
    return undefined;
  }

  patchBootOrder(wanted: Json | undefined): RefusedPatch | undefined {
    const known = (this.#bios?.bootOptions ?? []).map(({ id }) => id);
    const isRight = Array.isArray(wanted) && wanted.every((id) => known.some((one) => one === id));
    if (!isRight) return { key: 'PropertyValueNotInList', text: 'BootOrder names what is not' };
    const order = wanted.map(String);
    if (this.#habits.bootOrderIn === 'settings') this.#pendingOrder = order;
    else this.#bootOrder = order;
    return undefined;
  }

  /** What the system says of them. */
  ofSystem(): RedfishJsonObject {
    if (this.#bios === undefined) return {};
    const isApart = this.#habits.bootOrderIn === 'settings';
    return {
      Bios: link(biosPath),
      ...(isApart ? { '@Redfish.Settings': settingsAt(systemSettingsPath) } : {}),
    };
  }

  /** What the system says beside the override of one boot. */
  ofBoot(): RedfishJsonObject {
    if ((this.#bios?.bootOptions ?? []).length === 0) return {};
    return { BootOrder: this.#bootOrder, BootOptions: link(bootOptionsPath) };
  }

  /** Undefined: there is no such resource. */
  at(path: string): RedfishJsonObject | undefined {
    if (this.#bios === undefined) return undefined;
    const { bootOptions = [] } = this.#bios;
    switch (path) {
      case biosPath:
        return {
          ...resource('Bios.v1_1_0.Bios', path, 'Bios', 'BIOS'),
          AttributeRegistry: registryName,
          Attributes: this.#values,
          '@Redfish.Settings': settingsAt(biosSettingsPath),
        };
      case biosSettingsPath: {
        const Attributes = { ...this.#values, ...this.#pending };
        return { ...resource('Bios.v1_1_0.Bios', path, 'Settings', 'Settings'), Attributes };
      }
      case systemSettingsPath: {
        if (this.#habits.bootOrderIn !== 'settings') return undefined;
        const Boot = { BootOrder: this.#pendingOrder ?? this.#bootOrder };
        const type = 'ComputerSystem.v1_10_0.ComputerSystem';
        return { ...resource(type, path, 'Settings', 'Settings'), Boot };
      }
      case bootOptionsPath:
        return collection(
          'BootOption',
          path,
          bootOptions.map(({ id }) => `${path}/${id}`),
        );
      case registriesPath:
        return collection('MessageRegistryFile', path, [`${path}/${registryName}`]);
      case `${registriesPath}/${registryName}`:
        return {
          ...resource('MessageRegistryFile.v1_1_0.MessageRegistryFile', path, registryName, 'BIOS'),
          Registry: registryName,
          Location: [{ Language: 'en', Uri: registryPath }],
        };
      case registryPath:
        return { Id: registryName, RegistryEntries: { Attributes: this.#bios.registry ?? [] } };
      default: {
        const found = bootOptions.find(({ id }) => path === `${bootOptionsPath}/${id}`);
        if (found === undefined) return undefined;
        const { id, name } = found;
        const shape = resource('BootOption.v1_0_0.BootOption', path, id, name);
        return { ...shape, BootOptionReference: id, DisplayName: name };
      }
    }
  }
}

function settingsAt(path: string): RedfishJsonObject {
  return { SettingsObject: link(path), SupportedApplyTimes: ['OnReset'] };
}
