/** Finds numbers that are not finite. */
import { define, f32, get, set, vector } from '../../../base/assembler.js'
import { quads } from './loops.js'

/** (values, count, into): stores a number that is 0 if all values are finite. */
export const excess = define('excess', ['i32', 'i32', 'i32'], (locals, [values, count, into]) => {
  // x·0 is 0 or −0 for a finite x and NaN otherwise.
  const sum = locals.vector()
  const zero = vector.constant(0)
  const lane = (number: number) => vector.lane(get(sum), number)
  return [
    set(sum, zero),
    quads(locals, count, [values], set(sum, vector.add(get(sum), vector.mul(vector.load(get(values)), zero)))),
    f32.store(get(into), f32.add(f32.add(lane(0), lane(1)), f32.add(lane(2), lane(3))))
  ]
})
