/**
 * `node press-power.main.ts SOCKET`: presses the power button of the machine behind the control
 * socket of its QEMU (ACPI), as a BMC does for a soft off.
 */
import { connect } from 'node:net';

const [, , path = ''] = process.argv;
const commands = ['qmp_capabilities', 'system_powerdown'];
const socket = connect(path);
let answers = 0;
socket.setEncoding('utf8');
socket.setTimeout(10_000, () => socket.destroy(new Error('QEMU does not answer')));
socket.on('connect', () => {
  for (const execute of commands) socket.write(`${JSON.stringify({ execute })}\n`);
});
socket.on('data', (text: string) => {
  answers += text.split('"return"').length - 1;
  if (answers >= commands.length) socket.end();
});
