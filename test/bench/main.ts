/** `npm run bench -- NAME [ARGUMENTS]`: runs one benchmark. */
const benches: Readonly<Record<string, string>> = {
  agents: './agents/main.ts',
  bootstorm: './bootstorm/main.ts',
  dhcp: './dhcp/main.ts',
  erase: './erase/main.ts',
  http: './http/main.ts',
  image: './image/main.ts',
  lifecycle: './lifecycle/main.ts',
  scale: './scale/main.ts',
  start: './start/main.ts',
  tftp: './tftp/main.ts',
};

const name = process.argv[2] ?? '';
const program = benches[name];
if (program === undefined) {
  console.error(`bench "${name}": one of ${Object.keys(benches).join(', ')}`);
  process.exit(2);
}
process.argv.splice(2, 1);
await import(program);
