import { expect, test } from 'vitest';
import { asMac } from '../mac.ts';
import { type Lease, LeaseBook } from './lease-book.ts';

const one: Lease = {
  mac: asMac('52:54:00:00:00:01'),
  address: '10.77.0.1',
  bound: true,
  untilMs: 100,
};
const two: Lease = {
  mac: asMac('52:54:00:00:00:02'),
  address: '10.77.0.2',
  bound: true,
  untilMs: 100,
};

test('the lease book finds a lease by MAC and by address', () => {
  const book = LeaseBook.from({ leases: [one, two], setAside: [] });
  expect(book.leaseOf(one.mac)).toEqual(one);
  expect(book.holderOf(two.address)).toEqual(two);
  expect(book.holderOf('10.77.0.3')).toBeUndefined();
});

test('the lease book gives a MAC that gets another address only that one', () => {
  const book = LeaseBook.from({ leases: [one], setAside: [] });
  const moved = { ...one, address: '10.77.0.9' };
  book.apply([{ kind: 'leased', lease: moved }]);
  expect(book.holderOf(one.address)).toBeUndefined();
  expect(book.leaseOf(one.mac)).toEqual(moved);
});

test('the book refuses an address that another MAC holds, until that is forgotten', () => {
  const book = LeaseBook.from({ leases: [one], setAside: [] });
  const lease = { ...two, address: one.address };
  expect(() => book.apply([{ kind: 'leased', lease }])).toThrow('10.77.0.1 is leased to');
  book.apply([
    { kind: 'forgotten', mac: one.mac },
    { kind: 'offered', lease },
  ]);
  expect(book.holderOf(one.address)).toEqual(lease);
});

test('the lease book keeps the first of two records that contradict each other', () => {
  const leases = [one, { ...two, address: one.address }, { ...one, address: '10.77.0.9' }, two];
  const book = LeaseBook.from({ leases, setAside: [] });
  expect(book.records(0).leases).toEqual([one, two]);
});

test('the lease book forgets a declined address when its time has passed', () => {
  const book = new LeaseBook();
  const aside = { address: one.address, mac: one.mac, untilMs: 100 };
  book.apply([{ kind: 'setAside', ...aside }]);
  expect(book.isSetAside(one.address, 99)).toBe(true);
  expect(book.setAsideBy(one.mac, 99)).toBe(1);
  expect(book.records(99).setAside).toEqual([aside]);
  expect(book.isSetAside(one.address, 100)).toBe(false);
  expect(book.setAsideBy(one.mac, 100)).toBe(0);
  expect(book.records(100).setAside).toEqual([]);
});

test('the lease book reads back as it was written', () => {
  const book = LeaseBook.from({ leases: [one, two], setAside: [] });
  book.apply([{ kind: 'setAside', address: '10.77.0.7', mac: one.mac, untilMs: 50 }]);
  const records = book.records(10);
  expect(LeaseBook.from(records).records(10)).toEqual(records);
});
