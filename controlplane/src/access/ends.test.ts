import { expect, test } from 'vitest';
import { Ends } from './ends.ts';

test('the end of a credential is reported once to each observer that is still there', () => {
  const ends = new Ends();
  const told: string[] = [];
  const cancels = ['a', 'b', 'c'].map((name) => ends.add('one', () => told.push(name)));
  ends.add('other', () => told.push('other'));
  cancels[1]?.();
  ends.notify('one');
  expect(told).toEqual(['a', 'c']);
  ends.notify('none');
});

test('an end may cancel itself and others while it is told', () => {
  const ends = new Ends();
  const told: string[] = [];
  const cancel = ends.add('one', () => {
    told.push('first');
    cancel();
  });
  ends.add('one', () => told.push('second'));
  ends.notify('one');
  ends.notify('one');
  expect(told).toEqual(['first', 'second', 'second']);
});

test('an observer that is taken back twice takes no other away', () => {
  const ends = new Ends();
  const told: string[] = [];
  const takeBack = ends.add('h', () => told.push('first'));
  takeBack();
  ends.add('h', () => told.push('second'));
  takeBack();
  ends.notify('h');
  expect(told).toEqual(['second']);
});
