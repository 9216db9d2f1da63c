/**
 * Every row of the scenarios that is answered for, by the name its test carries. A row without a
 * test stands in the README with its reason; `rows.test.ts` compares.
 */
const rows: readonly {
  readonly of: string;
  /** The letter before the number, where a file has several lists. */
  readonly list?: string;
  readonly numbers: readonly number[];
}[] = [
  {
    of: 'garm',
    list: 'D',
    numbers: [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37],
  },
  { of: 'garm', list: 'R', numbers: [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31] },
  { of: 'garm', list: 'T', numbers: [2, 4, 6, 8, 10] },
  { of: 'garm', list: 'H', numbers: [1, 3, 5, 7, 9] },
  {
    of: 'ironic',
    numbers: [
      1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43, 45, 47, 49,
      51, 53, 55, 57, 59, 61, 63,
    ],
  },
  {
    of: 'metal3',
    numbers: [
      1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43, 45, 47, 49,
      51, 53, 55, 57, 59, 61, 63, 65, 67, 69, 71, 73, 75, 77, 79,
    ],
  },
  {
    of: 'tinkerbell',
    list: 'L',
    numbers: [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27],
  },
];

/** "ironic-1", "garm-D3": as tests and README name them. */
export const scenarioIds: readonly string[] = rows.flatMap(({ of, list = '', numbers }) =>
  numbers.map((number) => `${of}-${list}${number}`),
);
