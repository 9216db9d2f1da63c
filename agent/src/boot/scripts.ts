/**
 * The script that a host gets now, in the language of its loader: the same decision and the same
 * rules for all of them, by HTTP as by TFTP.
 *
 * No script is given before runners can dial the agent.
 */
import type { Mac } from '@rackwright/dhcp';
import { type Clock, type Log, type Read } from '@rackwright/platform';
import type { RunnerBootConfig } from './config.ts';
import type { DeployPages } from './deploy-pages.ts';
import {
  grubImageScript,
  grubLocalBootScript,
  grubRunnerScript,
  grubWaitingScript,
} from './grub-script.ts';
import { imageScript, waitingScript } from './image-script.ts';
import { type LineBudget, troubleBudget } from './line-budget.ts';
import type { BootMeter } from './meter.ts';
import type { BootGate } from './observation.ts';
import type { BootDecision } from './permission.ts';
import type { HostBootSettings } from './profiles.ts';
import { localBootScript, runnerScript } from './script.ts';
import { uBootImageScript, uBootRunnerScript, uBootWaitingScript } from './u-boot-script.ts';
import type { BootUrls } from './urls.ts';

export interface BootScriptsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly bootGate: BootGate;
  readonly runner: RunnerBootConfig;
  /** The boot settings of the host of a MAC; the problem is why it boots nothing. */
  readonly bootOf: (mac: Mac) => Read<HostBootSettings>;
  /** Absent: nothing is deployed here. */
  readonly deploys?: DeployPages;
  readonly meter?: BootMeter;
}

/** How a decision is written for a loader. */
interface ScriptForm {
  /** Undefined: the loader goes on to the disk when there is nothing for it. */
  readonly localBoot: (() => string) | undefined;
  readonly runner: typeof runnerScript;
  readonly image: typeof imageScript;
  readonly waiting: typeof waitingScript;
}

/** The languages of loaders. */
export type ScriptLanguage = 'ipxe' | 'grub' | 'uBoot';

const forms: Readonly<Record<ScriptLanguage, ScriptForm>> = {
  ipxe: {
    localBoot: localBootScript,
    runner: runnerScript,
    image: imageScript,
    waiting: waitingScript,
  },
  grub: {
    localBoot: grubLocalBootScript,
    runner: grubRunnerScript,
    image: grubImageScript,
    waiting: grubWaitingScript,
  },
  uBoot: {
    localBoot: undefined,
    runner: uBootRunnerScript,
    image: uBootImageScript,
    waiting: uBootWaitingScript,
  },
};

export type ScriptAnswer =
  | { readonly kind: 'script'; readonly text: string }
  /** It has nothing to boot, and its loader needs no script to find that out. */
  | { readonly kind: 'nothing' }
  /** Nothing is decided before `ready`. */
  | { readonly kind: 'later' }
  /** `unknownHost`: whose boot belongs to someone else; `fault`: one of ours, which is logged. */
  | { readonly kind: 'unknownHost' | 'fault' };

export class BootScripts {
  readonly #options: BootScriptsOptions;
  /** Resolves when runners can dial the agent. */
  readonly ready: Promise<void>;
  #agentPort: number | undefined;
  readonly #trouble: LineBudget;

  constructor(options: BootScriptsOptions) {
    this.#options = options;
    this.#trouble = troubleBudget(options.clock);
    const { agentPort } = options.runner;
    if (typeof agentPort === 'number') this.#agentPort = agentPort;
    this.ready = Promise.resolve(agentPort).then((port) => {
      this.#agentPort = port;
    });
  }

  /** Asks the boot gate. Observers learn from it that the host has reached its script. */
  of(mac: Mac, language: ScriptLanguage, urls: BootUrls): ScriptAnswer {
    const agentPort = this.#agentPort;
    if (agentPort === undefined) return { kind: 'later' };
    const decision = this.#options.bootGate(mac, 'script');
    const form = forms[language];
    switch (decision.kind) {
      case 'unknownHost':
        return decision.reason === 'off' ? { kind: 'unknownHost' } : localBoot(form);
      // Nobody opened the boot.
      case 'mayDiscover':
      case 'localBoot':
        return localBoot(form);
      case 'image':
        return this.#imageScript(urls, mac, decision, form);
      case 'runner':
      case 'discovery':
        return this.#runnerScript(`${urls.serverAddress}:${agentPort}`, urls, mac, decision, form);
    }
  }

  #runnerScript(
    agentEndpoint: string,
    urls: BootUrls,
    mac: Mac,
    decision: BootDecision & { kind: 'runner' | 'discovery' },
    form: ScriptForm,
  ): ScriptAnswer {
    const { clock, bootOf } = this.#options;
    const about = { mac, operation: decision.operationId };
    const boot = bootOf(mac);
    if (boot.kind === 'bad') {
      return this.#fault(about, `no boot script: ${boot.problem}`);
    }
    const runner = { ...this.#options.runner, kernelArguments: boot.value.kernelArguments };
    const fileUrl = (name: string): string => urls.hostFile(mac, name);
    const nowMs = clock.nowMs();
    try {
      const text = form.runner({ mac, decision, runner, agentEndpoint, fileUrl, nowMs });
      this.#options.meter?.runnerServed(decision.operationId);
      return script(text);
    } catch (error) {
      return this.#fault(about, 'no boot script', error);
    }
  }

  #imageScript(
    urls: BootUrls,
    mac: Mac,
    { hostUid, hostName }: BootDecision & { kind: 'image' },
    form: ScriptForm,
  ): ScriptAnswer {
    const { deploys } = this.#options;
    const text = 'nothing is deployed here';
    const boot = deploys?.netboot(hostUid) ?? ({ kind: 'waiting', text } as const);
    if (boot.kind === 'waiting') {
      return script(form.waiting(hostName, boot.text, urls.script(mac)));
    }
    try {
      return script(form.image({ mac, hostName, urls, boot }));
    } catch (error) {
      // A word of the image that the loader cannot be told.
      return this.#fault({ mac, host: hostUid }, 'no boot script', error);
    }
  }

  /** Any machine may ask for the script of a MAC that it knows, as often as it likes. */
  #fault(about: object, message: string, error?: unknown): ScriptAnswer {
    this.#trouble.spend((suppressed) => {
      this.#options.log.error({ ...about, suppressed }, message, error);
    });
    return { kind: 'fault' };
  }
}

function localBoot(form: ScriptForm): ScriptAnswer {
  return form.localBoot === undefined ? { kind: 'nothing' } : script(form.localBoot());
}

function script(text: string): ScriptAnswer {
  return { kind: 'script', text };
}
