/**
 * A request for a host, or for all selected hosts: `host clean h1`, `host clean --filter …`. All
 * have the same flags and ways to agree, to wait and to report; a table lists the differences.
 */
import type { Host } from '@rackwright/messages';
import { buildCommand, type FlagParametersForType } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { resourceName, type SharedFlags } from '../../flags.ts';
import type { Destruction } from '../../output/loss.ts';
import type { Connection } from '../../settings.ts';
import { withConnection } from '../frame/calls.ts';
import { agreeToDestroy } from '../frame/confirm.ts';
import { noView } from '../frame/progress.ts';
import { checkWait, type WaitFlags, waitFlags } from '../frame/wait.ts';
import { agreeToMany, askMany, checkRequestId } from './bulk.ts';
import {
  type HostClient,
  hostAliases,
  hostClient,
  hostFlags,
  hostPositional,
  reasonFlag,
  requestFlag,
  showHost,
} from './client.ts';
import { isSelection, type SelectionFlags, selectedHosts, selectionFlags } from './select.ts';
import { workDone } from './wait.ts';

/** The common part of each request. */
export interface VerbCall {
  readonly name: string;
  readonly reason: string;
  readonly requestId: string;
}

/** The request of a command line for each host. */
export interface PreparedRequest {
  /** The loss of data; unset: none. */
  readonly loss?: Destruction;
  ask(hosts: HostClient, call: VerbCall): Promise<Host>;
  /** Unset: the host is shown. */
  show?(io: CommandIo, flags: SharedFlags, host: Host): void;
}

/** Flags that every verb has, and those that some verbs have. */
export interface VerbFlags extends SharedFlags, SelectionFlags, Partial<WaitFlags> {
  readonly requestId: string;
}

/** The differences of one verb. */
export interface HostVerb<Own extends object> {
  /** The words after `host`: "power off". */
  readonly word: string;
  readonly docs: { readonly brief: string; readonly fullDescription?: string };
  readonly flags: FlagParametersForType<Own, CliContext>;
  /** Its requests carry a reason, for the audit. */
  readonly hasReason: boolean;
  /** The end of its work; unset: it starts none. */
  readonly waitsFor?: 'run' | 'goal' | 'deleted';
  /** The second argument; unset: there is none. */
  readonly second?: { readonly placeholder: string; readonly brief: string };
  prepare(
    io: CommandIo,
    flags: VerbFlags & Own,
    second: string,
  ): PreparedRequest | Promise<PreparedRequest>;
}

type AllFlags<Own> = VerbFlags & Own & { readonly reason?: string };

/** The command of a verb. */
export function hostVerb<Own extends object>(verb: HostVerb<Own>) {
  const { docs, second } = verb;
  const flags = {
    ...hostFlags,
    ...verb.flags,
    ...(verb.hasReason && !('reason' in verb.flags) ? reasonFlag : {}),
    ...selectionFlags,
    ...(verb.waitsFor === undefined ? {} : waitFlags),
    ...requestFlag,
  };
  const parameters = [
    { ...hostPositional, optional: true },
    ...(second === undefined ? [] : [{ ...second, parse: String, optional: true }]),
  ];
  return buildCommand<AllFlags<Own>, (string | undefined)[], CliContext>({
    docs,
    parameters: {
      // No type can combine the types of the single parts.
      flags: flags as never,
      positional: { kind: 'tuple', parameters } as never,
      aliases: hostAliases,
    },
    async func(given, ...args) {
      const { io } = this;
      const { wait = false, timeout } = given;
      checkWait({ wait, ...(timeout === undefined ? {} : { timeout }) });
      const { id, rest } = argumentsOf(verb, given, args);
      const prepared = await verb.prepare(io, given, rest);
      await withConnection(io, given, (connection) =>
        id === undefined
          ? askSelected(io, connection, given, verb, prepared)
          : askOne(io, connection, given, verb, prepared, id),
      );
    },
  });
}

/** The host that is named, unless they are selected, and the second argument. */
function argumentsOf<Own extends object>(
  { word, second }: HostVerb<Own>,
  given: AllFlags<Own>,
  args: readonly (string | undefined)[],
): { readonly id: string | undefined; readonly rest: string } {
  const more = second === undefined ? [] : [second.placeholder.toUpperCase()];
  const usage = (of: readonly string[]) => ['`rackwright host', word, ...of, ...more].join(' ');
  const words = args.filter((each) => each !== undefined);
  if (isSelection(given)) {
    checkRequestId(given.requestId);
    const [first, ...others] = words;
    if (words.length > more.length) {
      const both = `${first} and --filter or --rack both say which hosts`;
      throw new UsageError(`${both}: give one of them`);
    }
    if (words.length < more.length) {
      throw new UsageError(`which ${second?.placeholder}? ${usage(['--filter', 'FILTER'])}\``);
    }
    return { id: undefined, rest: [first, ...others].join('') };
  }
  const [id, rest = ''] = words;
  const one = usage(['HOST']);
  if (id === undefined) {
    throw new UsageError(`which host? ${one}\`, or many by --filter or --rack`);
  }
  if (second !== undefined && rest === '') {
    throw new UsageError(`which ${second.placeholder}? ${one}\``);
  }
  return { id, rest };
}

async function askOne<Own extends object>(
  io: CommandIo,
  connection: Connection,
  flags: AllFlags<Own>,
  verb: HostVerb<Own>,
  prepared: PreparedRequest,
  id: string,
): Promise<void> {
  const hosts = hostClient(connection);
  const { reason = '', requestId } = flags;
  const name = resourceName('hosts', id);
  if (prepared.loss !== undefined) {
    await agreeToDestroy(io, flags, hosts, name, prepared.loss);
  }
  const answered = await prepared.ask(hosts, { name, reason, requestId });
  const host = await workDone(io, connection, flags, verb.waitsFor, answered);
  (prepared.show ?? showHost)(io, flags, host);
}

async function askSelected<Own extends object>(
  io: CommandIo,
  connection: Connection,
  flags: AllFlags<Own>,
  verb: HostVerb<Own>,
  prepared: PreparedRequest,
): Promise<void> {
  const hosts = hostClient(connection);
  const { loss } = prepared;
  const chosen = await selectedHosts(hosts, flags, loss !== undefined);
  const { word } = verb;
  const destruction = { word, ...(loss === undefined ? {} : { loss }) };
  await agreeToMany(io, flags.yes, destruction, chosen);
  const { reason = '' } = flags;
  const ask = async ({ name }: Host) => {
    const answered = await prepared.ask(hosts, { name, reason, requestId: '' });
    return workDone(io, connection, flags, verb.waitsFor, answered, noView);
  };
  const { wait: waits = false } = flags;
  await askMany(io, flags, { ...destruction, waits, ask }, chosen);
}
