/**
 * A Redfish service (DSP0266) for one machine, without sockets: a call in, an answer out.
 *
 * 1. It reports the machine's state, not the requested one.
 * 2. A requested fault shows to every client in the same way, and ends on request.
 *
 * It must not know the programs that will speak to it: it satisfies clients of other authors.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '@rackwright/platform';
import { seededRandom } from '../random.ts';
import { Accounts } from './accounts.ts';
import { BiosPatches, biosSettingsPath, systemSettingsPath } from './bios.ts';
import { answerOf, answerUnder, deny, rubbish } from './denials.ts';
import { bmcResetPath, chassisPath, requestedIndicatorState } from './management.ts';
import { type MediaOrder, mediaOrder } from './media.ts';
import {
  asObject,
  type Json,
  json,
  noContent,
  parseObject,
  plainPath,
  type RedfishAnswer,
  type RedfishCall,
  type RedfishJsonObject,
  refusal,
} from './messages.ts';
import {
  bootTargets,
  defaultHabits,
  type RedfishBootTarget,
  type RedfishFault,
  type RedfishHabits,
  type RedfishHealth,
  type RedfishServiceOptions,
} from './options.ts';
import { Power } from './power.ts';
import {
  clearLogPath,
  controllerPath,
  resetPath,
  resourceAt,
  root,
  type ServiceState,
  serviceRoot,
  sessionResource,
  sessionsPath,
  systemPath,
} from './resources.ts';
import { pageOf } from './shapes.ts';
import { simpleUpdatePath, Updates } from './updates.ts';
import { Volumes } from './volumes.ts';

const assetTagCharactersMax = 64;

export class RedfishService {
  readonly #options: RedfishServiceOptions;
  readonly #habits: RedfishHabits;
  readonly #accounts: Accounts;
  readonly #power: Power;
  readonly #settings: BiosPatches;
  readonly #updates: Updates;
  readonly #volumes: Volumes;
  #fault: RedfishFault = { kind: 'none' };
  #assetTag = '';
  #logEntries: number;
  #health: RedfishHealth;
  #isLit = false;
  /** URL of the medium in its virtual drive. */
  #medium: string | undefined;
  #mediumReadings = 0;
  /** Informs its machine of media, one after another. */
  #telling: Promise<void> = Promise.resolve();
  readonly #clock: Clock;
  #startedAtMs: number;
  #restartsUntilMs = 0;

  constructor(clock: Clock, options: RedfishServiceOptions) {
    const random = seededRandom(options.seed ?? 0);
    this.#options = options;
    this.#logEntries = options.logEntries ?? 0;
    this.#health = options.health ?? 'OK';
    this.#clock = clock;
    this.#startedAtMs = clock.nowMs();
    this.#habits = { ...defaultHabits, ...options.habits };
    this.#settings = new BiosPatches(options.bios, this.#habits);
    const firmware = [{ id: 'BMC', version: '1.0.0' }, ...(options.firmware ?? [])];
    this.#updates = new Updates(clock, this.#habits, firmware);
    this.#volumes = new Volumes(clock, this.#habits, options.raid, controllerPath);
    this.#accounts = new Accounts(clock, random, this.#habits, options);
    this.#power = new Power({
      clock,
      random,
      habits: this.#habits,
      machine: options.machine,
      onMachineError: options.onMachineError ?? (() => {}),
      onBoot: () => this.#settings.boot(this.#fault),
    });
    this.setFault(options.fault ?? { kind: 'none' });
  }

  fault(): RedfishFault {
    return this.#fault;
  }

  setFault(fault: RedfishFault): void {
    this.#fault = fault;
    if (fault.kind === 'lockedOut') this.#accounts.lockOut(fault.forMs);
    else this.#accounts.unlock();
  }

  /** The reported facts of its machine from now on. */
  setHealth(health: RedfishHealth): void {
    this.#health = health;
  }

  /** Like a person at the BMC's own page; ends all sessions. */
  setPassword(password: string): void {
    this.#accounts.setPassword(password);
  }

  switches(): number {
    return this.#power.switches();
  }

  softOffs(): number {
    return this.#power.softOffs();
  }

  /** Gives up a switch that waits for its time. */
  stop(): void {
    this.#power.stop();
  }

  /** It restarts, and answers nobody. */
  isAway(): boolean {
    const changes = [this.#updates, this.#volumes];
    if (changes.some((one) => one.dropsNow(this.#fault))) this.#goAway();
    return this.#clock.suspendAwareMs() < this.#restartsUntilMs;
  }

  /** URL of the medium in its virtual drive. */
  medium(): string | undefined {
    return this.#medium;
  }

  updates(): number {
    return this.#updates.orders();
  }

  volumes(): { orders: number; layout: readonly string[] } {
    return { orders: this.#volumes.orders(), layout: this.#volumes.layout(this.#fault) };
  }

  settings(): BiosPatches {
    return this.#settings;
  }

  isLit(): boolean {
    return this.#isLit;
  }

  answer(call: RedfishCall): RedfishAnswer {
    if (this.#fault.kind === 'rubbish') return rubbish;
    const path = plainPath(call.target);
    if (path === '/redfish') return this.#read(call, { v1: `${root}/` });
    if (path === root && !this.#habits.guardsRoot) {
      return this.#read(call, serviceRoot(this.#state()));
    }
    if (path === sessionsPath && call.method === 'POST') return this.#signIn(call);
    const refused = this.#refuseStranger(call);
    if (refused !== undefined) return refused;
    if (path === root) return this.#read(call, serviceRoot(this.#state()));
    const done = this.#customPage(path, call);
    if (done !== undefined) return done;
    const order = mediaOrder(call.method, path, parseObject(call.body) ?? {}, this.#habits);
    if (order !== undefined) return this.#orderMedium(order, parseObject(call.body) ?? {});
    if (path.endsWith('/VirtualMedia/Cd')) this.#wearMedium();
    const session = path.startsWith(`${sessionsPath}/`) && call.method === 'DELETE';
    if (session && this.#accounts.signOut(path.slice(sessionsPath.length + 1))) return noContent();
    const found =
      this.#updates.at(path, this.#fault) ??
      this.#volumes.at(path, this.#fault) ??
      resourceAt(path, this.#state());
    if (found === undefined) return refusal(404, 'ResourceMissingAtURI', `nothing is at ${path}`);
    return this.#read(call, found);
  }

  /** The handler of a request that changes something; undefined: this one does not. */
  #customPage(path: string, call: RedfishCall): RedfishAnswer | undefined {
    if (path === resetPath) return this.#reset(call);
    if (path === clearLogPath) return this.#clearLog(call);
    if (path === simpleUpdatePath) return this.#updates.order(call, this.#fault);
    if (path === bmcResetPath && this.#habits.restartMs !== undefined) return this.#restart(call);
    const onVolumes = this.#volumes.respond(path, call, this.#fault);
    if (onVolumes !== undefined) return onVolumes;
    return call.method === 'PATCH' ? this.#patched(path, call) : undefined;
  }

  #patched(path: string, call: RedfishCall): RedfishAnswer | undefined {
    const answer = (() => {
      switch (path) {
        case chassisPath:
          return this.#patchChassis(call);
        case systemPath:
          return this.#patch(call);
        case biosSettingsPath:
        case systemSettingsPath:
          return resourceAt(path, this.#state()) && this.#patchSettings(path, call);
        default:
          return undefined;
      }
    })();
    return answer && answerUnder(this.#fault, answer);
  }

  #patchSettings(path: string, call: RedfishCall): RedfishAnswer {
    const refused = this.#refusePrecondition(call, path);
    if (refused !== undefined) return refused;
    const body = parseObject(call.body) ?? {};
    if (this.#fault.kind === 'biosRefused') {
      return refusal(400, 'PropertyNotWritable', 'settings are locked');
    }
    if (this.#fault.kind === 'yesButNothing') return noContent();
    if (path === biosSettingsPath) return answerOf(this.#settings.patchBios(body));
    return answerOf(this.#settings.patchBootOrder(asObject(body['Boot'])?.['BootOrder']));
  }

  #read({ method, target }: RedfishCall, resource: RedfishJsonObject): RedfishAnswer {
    if (method !== 'GET' && method !== 'HEAD') {
      const text = `${method} is not for this resource`;
      return refusal(405, 'OperationNotAllowed', text, { allow: 'GET, HEAD' });
    }
    const { etags, membersPerPage } = this.#habits;
    const page = pageOf(resource, target, membersPerPage);
    if (etags === 'none') return json(200, page);
    const etag = this.#etagOf(resource);
    return json(200, { ...page, '@odata.etag': etag }, { etag });
  }

  #etagOf(resource: RedfishJsonObject): string {
    const digest = createHash('sha256').update(JSON.stringify(resource)).digest('hex');
    const strong = `"${digest.slice(0, 16)}"`;
    return this.#habits.etags === 'weak' ? `W/${strong}` : strong;
  }

  #state(): ServiceState {
    const { inventory = {} } = this.#options;
    return {
      identity: this.#options.identity,
      inventory: typeof inventory === 'function' ? inventory() : inventory,
      habits: this.#habits,
      powerState: this.#power.state(),
      boot: this.#power.boot,
      assetTag: this.#assetTag,
      medium: this.#medium,
      logEntries: this.#logEntries,
      sensors: this.#options.sensors ?? {},
      health: this.#health,
      firmware: this.#updates.firmware(this.#fault),
      isLit: this.#isLit,
      settings: this.#settings,
      storage: this.#volumes.ofStorage(),
      startedAt: new Date(this.#startedAtMs).toISOString(),
      sessions: this.#accounts.sessions(),
    };
  }

  #signIn(call: RedfishCall): RedfishAnswer {
    if (this.#habits.sessionsMax === 0) {
      return refusal(404, 'ResourceMissingAtURI', 'this service has no sessions');
    }
    const body = parseObject(call.body);
    const { UserName: user, Password: password } = body ?? {};
    if (typeof user !== 'string' || typeof password !== 'string') {
      return refusal(400, 'PropertyMissing', 'UserName and Password are required');
    }
    const signIn = this.#accounts.signIn(user, password, this.#fault.kind);
    switch (signIn.kind) {
      case 'session': {
        const { session } = signIn;
        const headers = {
          location: `${sessionsPath}/${session.id}`,
          'x-auth-token': session.token,
        };
        return json(201, sessionResource(session), headers);
      }
      case 'full':
        return refusal(503, 'SessionLimitExceeded', 'all sessions are in use');
      case 'refused':
      case 'lockedOut':
        return deny(signIn);
    }
  }

  /** Undefined: the caller may go on. */
  #refuseStranger({ headers }: RedfishCall): RedfishAnswer | undefined {
    const token = headers['x-auth-token'];
    if (token !== undefined) {
      return this.#accounts.hasSession(token)
        ? undefined
        : refusal(401, 'NoValidSession', 'there is no such session');
    }
    const basic = /^Basic ([A-Za-z0-9+/=]+)$/.exec(headers['authorization'] ?? '')?.[1];
    if (basic === undefined) {
      const challenge = { 'www-authenticate': 'Basic realm="Redfish"' };
      return refusal(401, 'NoValidSession', 'a session is needed', challenge);
    }
    const text = Buffer.from(basic, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    const [user, password] = [text.slice(0, colon), text.slice(colon + 1)];
    const admission = this.#accounts.check(user, password, this.#fault.kind);
    return admission.kind === 'admitted' ? undefined : deny(admission);
  }

  #reset(call: RedfishCall): RedfishAnswer {
    if (call.method !== 'POST') {
      const text = 'an action is called by POST';
      return refusal(405, 'OperationNotAllowed', text, { allow: 'POST' });
    }
    const type = parseObject(call.body)?.['ResetType'];
    if (typeof type !== 'string') {
      return refusal(400, 'ActionParameterMissing', 'ResetType is required');
    }
    if (!this.#habits.resetTypes.includes(type)) {
      if (this.#habits.unknownValues === 'ignored') return noContent();
      return refusal(400, 'ActionParameterNotSupported', `ResetType ${type} is not supported`);
    }
    const power = this.#power;
    if (power.isResting() && !power.isOn()) {
      return refusal(409, 'ResourceInUse', 'power is still going down');
    }
    if (this.#fault.kind === 'yesButNothing') return noContent();
    switch (type) {
      case 'On':
      case 'ForceOn':
        power.switchLater('on');
        break;
      case 'ForceOff':
        power.switchLater('off');
        break;
      case 'GracefulShutdown':
        power.softOffLater();
        break;
      case 'ForceRestart':
      case 'GracefulRestart':
      case 'PowerCycle':
        if (power.isOn()) power.switchLater('off', 'on');
    }
    return answerUnder(this.#fault, noContent());
  }

  #orderMedium(order: MediaOrder, body: RedfishJsonObject): RedfishAnswer {
    const { Image: image, ...others } = body;
    if (order === 'insert') {
      if (typeof image !== 'string')
        return refusal(400, 'ActionParameterMissing', 'Image is required');
      if (this.#habits.mediaBy === 'imageAlone' && Object.keys(others).length > 0) {
        return refusal(400, 'ActionParameterNotSupported', 'only Image is supported');
      }
      if (this.#fault.kind === 'mediaRefused') {
        return refusal(400, 'InsertMediaFailed', `${image} cannot be fetched`);
      }
      if (this.#medium !== undefined)
        return refusal(400, 'ResourceInUse', 'the drive is not empty');
    }
    if (this.#fault.kind === 'yesButNothing') return noContent();
    this.#setMedium(typeof image === 'string' ? image : undefined);
    return noContent();
  }

  #setMedium(url: string | undefined): void {
    this.#medium = url;
    this.#mediumReadings = 0;
    const { machine, onMachineError = () => {} } = this.#options;
    const insert = async (): Promise<void> => machine.medium?.(url);
    this.#telling = this.#telling.then(insert).catch((error: unknown) => {
      onMachineError(error);
      this.#medium = undefined;
    });
  }

  #wearMedium(): void {
    if (this.#fault.kind !== 'mediaLost' || this.#medium === undefined) return;
    this.#mediumReadings += 1;
    if (this.#mediumReadings > this.#fault.afterReadings) this.#setMedium(undefined);
  }

  /** Empty, but for the entry about that. */
  #clearLog({ method }: RedfishCall): RedfishAnswer {
    if (method !== 'POST') {
      const text = 'an action is called by POST';
      return refusal(405, 'OperationNotAllowed', text, { allow: 'POST' });
    }
    if (this.#fault.kind !== 'yesButNothing') this.#logEntries = 1;
    return noContent();
  }

  /** Away for a while, and without any session when it is back. */
  #restart({ method }: RedfishCall): RedfishAnswer {
    if (method !== 'POST') {
      const text = 'an action is called by POST';
      return refusal(405, 'OperationNotAllowed', text, { allow: 'POST' });
    }
    if (this.#fault.kind !== 'yesButNothing') this.#goAway();
    return answerUnder(this.#fault, noContent());
  }

  #goAway(): void {
    this.#restartsUntilMs = this.#clock.suspendAwareMs() + (this.#habits.restartMs ?? 0);
    this.#startedAtMs = this.#clock.nowMs();
    this.#accounts.endSessions();
  }

  #patchChassis(call: RedfishCall): RedfishAnswer {
    const refused = this.#refusePrecondition(call, chassisPath);
    if (refused !== undefined) return refused;
    const lit = requestedIndicatorState(parseObject(call.body) ?? {}, this.#habits);
    if (lit === undefined) return refusal(400, 'PropertyNotWritable', 'only its lamp is writable');
    if (this.#fault.kind !== 'yesButNothing') this.#isLit = lit;
    return noContent();
  }

  #patch(call: RedfishCall): RedfishAnswer {
    const refused = this.#refusePrecondition(call, systemPath);
    if (refused !== undefined) return refused;
    const body = parseObject(call.body);
    if (body === undefined) return refusal(400, 'MalformedJSON', 'the body is no JSON object');
    const { Boot: boot, AssetTag: assetTag, ...others } = body;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) {
      return refusal(400, 'PropertyNotWritable', `${unknown} cannot be written`);
    }
    if (this.#fault.kind === 'yesButNothing') return noContent();
    if (typeof assetTag === 'string') this.#assetTag = assetTag.slice(0, assetTagCharactersMax);
    if (boot === undefined) return noContent();
    const wanted = asObject(boot);
    if (wanted === undefined) return refusal(400, 'PropertyValueTypeError', 'Boot is no object');
    return this.#patchBoot(wanted);
  }

  #refusePrecondition({ headers }: RedfishCall, path: string): RedfishAnswer | undefined {
    const ifMatch = headers['if-match'];
    const { needsIfMatch, comparesStrongly } = this.#habits;
    if (ifMatch === undefined) {
      if (!needsIfMatch) return undefined;
      return refusal(428, 'PreconditionRequired', 'If-Match is required');
    }
    if (ifMatch === '*' || this.#habits.etags === 'none') return undefined;
    const resource = resourceAt(path, this.#state());
    const current = resource === undefined ? '' : this.#etagOf(resource);
    const wanted = comparesStrongly ? current.replace(/^W\//, '') : current;
    if (ifMatch === wanted) return undefined;
    return refusal(412, 'PreconditionFailed', 'the resource has another ETag');
  }

  #patchBoot({ BootOrder: order, ...wanted }: RedfishJsonObject): RedfishAnswer {
    if (order !== undefined && this.#habits.bootOrderIn === 'settings') {
      return refusal(400, 'PropertyNotWritable', 'BootOrder is written in the settings');
    }
    if (order !== undefined) return answerOf(this.#settings.patchBootOrder(order));
    const { boot } = this.#power;
    if (this.#habits.needsBootTarget && wanted['BootSourceOverrideTarget'] === undefined) {
      return refusal(400, 'PropertyMissing', 'BootSourceOverrideTarget is missing');
    }
    const target = wanted['BootSourceOverrideTarget'] ?? boot.target;
    const enabled = wanted['BootSourceOverrideEnabled'] ?? boot.enabled;
    const mode = wanted['BootSourceOverrideMode'] ?? boot.mode;
    const problem = this.#bootProblem(target, enabled, mode);
    if (problem !== undefined) {
      if (this.#habits.unknownValues === 'ignored') return noContent();
      return refusal(400, 'PropertyValueNotInList', problem);
    }
    const isOff = enabled === 'Disabled' || target === 'None';
    boot.target = isOff ? 'None' : (target as RedfishBootTarget);
    boot.enabled = isOff ? 'Disabled' : (enabled as typeof boot.enabled);
    boot.mode = mode as RedfishHabits['mode'];
    return noContent();
  }

  #bootProblem(target: Json, enabled: Json, mode: Json | undefined): string | undefined {
    const offered: readonly Json[] = bootTargets.filter((one) =>
      this.#habits.bootTargets.includes(one),
    );
    const say = (value: unknown): string => JSON.stringify(value);
    if (!offered.includes(target)) return `BootSourceOverrideTarget may not be ${say(target)}`;
    if (enabled !== 'Disabled' && enabled !== 'Once' && enabled !== 'Continuous') {
      return `BootSourceOverrideEnabled may not be ${say(enabled)}`;
    }
    const knowsMode = mode === 'Legacy' || mode === 'UEFI' || mode === undefined;
    if (!knowsMode || (mode !== undefined && this.#habits.mode === undefined)) {
      return `BootSourceOverrideMode may not be ${say(mode)}`;
    }
    return undefined;
  }
}
