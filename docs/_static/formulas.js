// Typeset each formula of the page in place of its source.
for (const element of document.querySelectorAll(".formula")) {
  katex.render(element.textContent, element, {
    displayMode: element.tagName === "DIV",
    throwOnError: false,
  });
}
