/** Preloaded into a real peer: its gradient sums are multiplied by −1,000 and do not keep to the bound of influence. */
import { OwnInfluence } from '../../src/admb/influence.js'

const { bounded } = OwnInfluence.prototype

OwnInfluence.prototype.bounded = function (block, b, count, exponents) {
  const sum = bounded.call(this, block, b, count, exponents)
  // The votes are the only block that the method replaces by one of another length.
  return sum.length === block.length && block.length > 1 ? sum.map(value => -1000 * value + 0) : sum
}
