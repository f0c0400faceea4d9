/** Identities of the nodes at the start. */
import type { Random } from './engine/random.js'
import type { Scenario } from './scenario.js'

/** Indices as text of equal length, so that their order as text is their order as numbers. */
export function labelsOf({ nodes, labels, topology }: Scenario, random: Random): string[] {
  const numbers = Array.from({ length: nodes }, (_, i) => i + 1)
  if (labels === 'random') random.shuffle(numbers)
  if (labels === 'hub-highest') numbers[topology === 'path' ? nodes >> 1 : 0] = nodes + 1
  const width = String(nodes + 1).length
  return numbers.map(number => String(number).padStart(width, '0'))
}
