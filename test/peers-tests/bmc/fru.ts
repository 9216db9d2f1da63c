/**
 * Builds the bytes of a FRU (IPMI Platform Management FRU Information Storage Definition 1.0,
 * revision 1.3) for ipmi_sim's `mc_add_fru_data`: chassis, board and product area.
 */
export interface FruTexts {
  readonly manufacturer: string;
  readonly product: string;
  readonly serial: string;
  readonly boardSerial: string;
  readonly chassisSerial: string;
}

/** Chassis type of §10: rack mount. */
const rackMount = 0x17;
const english = 25;

export function fruBytes(texts: FruTexts): Uint8Array {
  const chassis = area([rackMount], ['RM-1', texts.chassisSerial]);
  const boardFields = [texts.manufacturer, 'Board', texts.boardSerial, 'BP-1', ''];
  const board = area([english, 0, 0, 0], boardFields);
  const { manufacturer, product, serial } = texts;
  const productArea = area([english], [manufacturer, product, 'PP-1', '1', serial, '', '']);
  const boardAt = 1 + chassis.length / 8;
  const header = [1, 0, 1, boardAt, boardAt + board.length / 8, 0, 0];
  return Uint8Array.from([...header, checksum(header), ...chassis, ...board, ...productArea]);
}

/** The bytes as ipmi_sim's command file wants them. */
export function fruCommand(texts: FruTexts): string {
  const bytes = fruBytes(texts);
  const words = [...bytes].map((byte) => `0x${byte.toString(16).padStart(2, '0')}`);
  return `mc_add_fru_data 0x20 0 ${bytes.length} data ${words.join(' ')}`;
}

function area(head: readonly number[], fields: readonly string[]): readonly number[] {
  const body = fields.flatMap((text) => [0xc0 | text.length, ...new TextEncoder().encode(text)]);
  const bytes = [1, 0, ...head, ...body, 0xc1];
  while ((bytes.length + 1) % 8 !== 0) bytes.push(0);
  bytes[1] = (bytes.length + 1) / 8;
  return [...bytes, checksum(bytes)];
}

function checksum(bytes: readonly number[]): number {
  return -bytes.reduce((sum, byte) => sum + byte, 0) & 0xff;
}
