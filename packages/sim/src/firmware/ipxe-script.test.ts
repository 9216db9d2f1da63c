import { describe, expect, test } from 'vitest';
import { runIpxeScript } from './ipxe-script.ts';

/** A network whose files fail as often as `failures` says. */
function machine(failures = 0) {
  const fetched: string[] = [];
  const slept: number[] = [];
  const printed: string[] = [];
  let left = failures;
  return {
    fetched,
    slept,
    printed,
    fetch(url: string): Promise<Uint8Array> {
      fetched.push(url);
      if (left === 0) return Promise.resolve(Uint8Array.of(1, 2, 3));
      left -= 1;
      return Promise.reject(new Error(`${url}: connection reset`));
    },
    sleep(durationMs: number): Promise<void> {
      slept.push(durationMs);
      return Promise.resolve();
    },
    print: (text: string) => printed.push(text),
  };
}

const runnerScript = `#!ipxe
echo Rackwright: h1 starts the runner
set attempt:int32 0
:fetch
kernel http://a/vmlinuz initrd=initrd quiet && initrd --name initrd http://a/i.img && boot ||
inc attempt
iseq \${attempt} 3 && exit 1 ||
imgfree
sleep 2
goto fetch
`;

describe('an iPXE script', () => {
  test('boots the kernel with its arguments and the ramdisk by its name', async () => {
    const end = await runIpxeScript(runnerScript, machine());
    expect(end).toMatchObject({
      kind: 'boot',
      kernel: { name: 'vmlinuz', arguments: 'initrd=initrd quiet' },
      others: [{ name: 'initrd' }],
    });
  });

  test('tries a failed download again, from a clean slate', async () => {
    const world = machine(2);
    expect(await runIpxeScript(runnerScript, world)).toMatchObject({ kind: 'boot' });
    expect(world.slept).toEqual([2_000, 2_000]);
    expect(world.fetched).toHaveLength(4);
  });

  test('gives up after the attempts that the script allows', async () => {
    const world = machine(3);
    expect(await runIpxeScript(runnerScript, world)).toEqual({ kind: 'exit', code: 1 });
    expect(world.printed).toContain('http://a/vmlinuz: connection reset');
  });

  test('ends at the first line that fails, unless the line ends in ||', async () => {
    const failing = await runIpxeScript('#!ipxe\niseq 1 2\nexit 0', machine());
    expect(failing).toEqual({ kind: 'failed', message: '"iseq 1 2": 1 and 2 differ' });
    const guarded = await runIpxeScript('#!ipxe\niseq 1 2 ||\nexit 7', machine());
    expect(guarded).toEqual({ kind: 'exit', code: 7 });
  });

  test.for([
    ['sanboot 0x80', 'sanboot: command not found'],
    ['boot', 'no kernel has been loaded'],
    ['goto nowhere', 'there is no label nowhere'],
  ])('fails at "%s" rather than go on', async ([line, message]) => {
    const end = await runIpxeScript(`#!ipxe\n${line}\nexit 0`, machine());
    expect(end).toEqual({ kind: 'failed', message: `"${line}": ${message}` });
  });

  test('does not go round for ever', async () => {
    const end = await runIpxeScript('#!ipxe\n:a\ngoto a', machine());
    expect(end).toMatchObject({ kind: 'failed' });
  });

  test('is not any text that a server sends', async () => {
    expect(await runIpxeScript('<html>', machine())).toMatchObject({ kind: 'failed' });
  });
});
