/** rackwright host console: the output of a host's serial console. */
import {
  ConsoleState,
  type WatchHostConsoleResponse,
  WatchHostConsoleResponseSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { resourceName, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printEvent } from '../../output/show.ts';
import { clean } from '../../output/text.ts';
import { hostAliases, hostArgument, hostFlags, withHosts } from './client.ts';
import { ConsoleText, EndKeys } from './console-text.ts';

/** The console may have left anything behind: modes, mouse, another screen, hidden cursor. */
const modesOff = [1000, 1002, 1003, 1006, 1049, 2004].map((mode) => `\x1b[?${mode}l`).join('');
const restored = `${modesOff}\x1b[!p\x1b[?25h\x1b[0m\r\n`;

export const hostConsole = buildCommand({
  docs: {
    brief: 'Show the serial console of a host, read only',
    fullDescription:
      'Show the serial console of a host, as its BMC receives it: first what the agent has kept, ' +
      'then what comes. Nothing is written to it. It ends with ~. at the beginning of a line, or ' +
      'Ctrl-C.\n\n' +
      'A terminal gets only control sequences that are known to draw. A file or a program gets ' +
      'only text.',
  },
  parameters: { flags: hostFlags, positional: hostArgument, aliases: hostAliases },
  async func(this: CliContext, flags: SharedFlags, id: string) {
    const name = resourceName('hosts', id);
    const { io } = this;
    const ended = new AbortController();
    const signal = AbortSignal.any([io.signal, ended.signal]);
    const isTerminal = io.out.columns !== undefined;
    const keys = new EndKeys();
    // Typed keys are taken so that nothing that the terminal answers reaches the shell afterwards.
    const letGo = io.takeKeys?.((typed) => {
      if (keys.take(typed)) ended.abort();
    });
    const text = new ConsoleText(isTerminal);
    if (isTerminal) io.err.write('Read only; Enter ~. or Ctrl-C ends it.\r\n');
    try {
      await withHosts(io, flags, async (hosts) => {
        for await (const shown of hosts.watchHostConsole({ name }, { signal })) {
          if (isForPrograms(flags.output)) {
            printEvent(io, flags.output, WatchHostConsoleResponseSchema, shown);
          } else show(io, text, shown);
        }
      });
    } catch (error) {
      if (!ended.signal.aborted) throw error;
    } finally {
      letGo?.();
      if (isTerminal) io.out.write(restored);
    }
  },
});

function show(io: CommandIo, text: ConsoleText, shown: WatchHostConsoleResponse): void {
  const { content, droppedBytes, state, message } = shown;
  if (droppedBytes > 0n) io.err.write(`… ${droppedBytes} bytes were left out …\r\n`);
  if (content.length > 0) io.out.write(text.take(content));
  if (state === ConsoleState.WAITING) {
    io.err.write(`\r\nNot heard now: ${clean(message)}. It is tried again.\r\n`);
  }
}
