/** When a loop looks at a thing: one look after the other, at a set time, and slowly at all. */
export { Alarms } from './alarms.ts';
export { Looks } from './looks.ts';
export { OneByOne } from './one-by-one.ts';
export { resyncLater } from './resync.ts';
