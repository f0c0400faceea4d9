/** The list of events, newest first. Important events are also announced to screen readers. */
import type { NetworkEvent } from '../../view/event-log.js'
import type { NetworkState } from '../network-state.js'
import { describeEvent } from '../sentences.js'
import { html, keyed, setText } from './dom.js'

const MAX_SHOWN = 60
const SYMBOLS: Readonly<Record<NetworkEvent['kind'], string>> = {
  joined: '+',
  left: '−',
  lost: '?',
  partitioned: '≠',
  healed: '=',
  adopted: '→',
  restarted: '↻',
  refused: '×',
  drift: '↗',
  duplicated: '‖'
}
const ANNOUNCED: readonly NetworkEvent['kind'][] = [
  'lost',
  'partitioned',
  'healed',
  'restarted',
  'refused',
  'drift',
  'duplicated'
]
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false
})

export class EventList {
  readonly #list: HTMLElement
  readonly #announcer: HTMLElement
  #announced: number | undefined

  constructor(list: HTMLElement, announcer: HTMLElement) {
    this.#list = list
    this.#announcer = announcer
  }

  draw({ events, peers }: NetworkState): void {
    keyed(
      this.#list,
      events.slice(-MAX_SHOWN).reverse(),
      ({ seq, at }) => `${seq} ${at}`,
      ({ kind, at }) =>
        html(
          'li',
          { class: kind },
          html('span', { class: 'symbol', 'aria-hidden': 'true' }, SYMBOLS[kind]),
          html('time', { datetime: new Date(at).toISOString() }, clock.format(at)),
          html('span', { class: 'what' })
        ),
      (element, event) => setText(element.children[2], describeEvent(event, peers))
    )
    const last = events.at(-1)?.seq ?? 0
    // Events from before the page was opened are not announced.
    const announced = this.#announced ?? last
    const news = events.filter(({ seq, kind }) => seq > announced && ANNOUNCED.includes(kind))
    this.#announced = last
    if (news.length > 0) setText(this.#announcer, news.map(event => describeEvent(event, peers)).join('. '))
  }
}
