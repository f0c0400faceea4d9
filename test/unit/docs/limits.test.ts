/** docs/reference/limits.md states the limits of the code. */
import assert from 'node:assert/strict'
import { defaultLimits, maxGossipBytes } from '../../../src/network/limits.js'
import { CARRY_PARAMETERS, DEFAULT_CARRY } from '../../../src/peer/options.js'
import { read } from '../../support/documents.js'

/** The limit that the page states. */
function limit(what: string): string {
  const row = read('docs/reference/limits.md')
    .split('\n')
    .find(line => line.startsWith(`| ${what} `))
  assert.ok(row, `there is no row ${what}`)
  return row.split('|')[2].trim()
}

describe('docs/reference/limits.md', () => {
  it('states the limits of the code', () => {
    const { connections, inboundPerSecond, controlPerSecond, fetchesPerSecond, gossipPerSecond } = defaultLimits
    const stated: readonly (readonly [string, string])[] = [
      ['connections', `${connections}; `],
      ['inbound connections from one host', `${inboundPerSecond} a second`],
      ['control messages of one session', `${controlPerSecond} a second, bursts of ${2 * controlPerSecond}`],
      ['fetch requests of one peer', `${fetchesPerSecond} a second, bursts of ${2 * fetchesPerSecond}`],
      ['silence of the other end of a fetch', `${defaultLimits.fetchSilenceMs / 1000} s`],
      ['gossip per origin and topic', `${gossipPerSecond} a second, ${maxGossipBytes / 1024} KiB each`],
      [
        'carry-over by default (S)',
        `${DEFAULT_CARRY} periods; 0 above ${CARRY_PARAMETERS === 2e6 ? 'two' : '?'} million`
      ]
    ]
    for (const [what, text] of stated) assert.ok(limit(what).startsWith(text), `${what}: ${limit(what)}, not ${text}`)
  })
})
