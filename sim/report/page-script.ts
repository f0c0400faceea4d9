/**
 * The page's own script. Plots are in the page as drawings that need no script; this puts living ones in their place, with a
 * tooltip and legends that pick out a line by a click.
 */
export const SCRIPT = `
const tooltip = document.body.appendChild(Object.assign(document.createElement('div'), { className: 'tooltip' }))
function showTooltip(_handler, event, _item, value) {
  if (value === null || value === undefined || value === '' || typeof value !== 'object') {
    tooltip.style.display = 'none'
    return
  }
  tooltip.replaceChildren(...Object.entries(value).filter(([, text]) => text !== '').map(([name, text]) => {
    const line = document.createElement('div')
    line.append(Object.assign(document.createElement('span'), { textContent: name }), String(text))
    return line
  }))
  tooltip.style.display = 'block'
  const { width, height } = tooltip.getBoundingClientRect()
  const right = event.clientX + 14 + width > innerWidth
  tooltip.style.left = Math.max(4, right ? event.clientX - width - 14 : event.clientX + 14) + 'px'
  tooltip.style.top = Math.max(4, Math.min(innerHeight - height - 4, event.clientY + 14)) + 'px'
}
async function enliven(place, spec) {
  const stage = document.createElement('div')
  stage.setAttribute('role', 'img')
  stage.setAttribute('aria-label', spec.description)
  const view = new vega.View(vega.parse(spec), { renderer: 'svg', container: stage, hover: true, logLevel: vega.Error })
  await view.tooltip(showTooltip).runAsync()
  place.replaceChildren(stage)
}
const specs = JSON.parse(document.getElementById('plots').textContent)
for (const [name, spec] of Object.entries(specs)) {
  enliven(document.querySelector('#' + name + ' .plot'), spec).catch(error => console.error(name, error))
}
`
