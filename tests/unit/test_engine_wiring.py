"""Engines from settings: a file of recognizers that cannot be used stops the start with one sentence."""

import pytest

from app.engine_wiring import pool_detector
from app.settings import ConfigurationError, DetectionSettings


def test_recognizers_of_the_settings_have_their_types(tmp_path):
    file = tmp_path / "recognizers.yaml"
    file.write_text("recognizers: [{name: Words, supported_entity: CODE_NAME, deny_list: [Bluebird]}]")

    detector = pool_detector(DetectionSettings(recognizers=file))

    assert detector.label_of("CODE_NAME") == "CODE_NAME" and "CODE_NAME" in detector.labels()
    assert pool_detector(DetectionSettings()).label_of("CODE_NAME") is None


@pytest.mark.parametrize(
    ("content", "told"), [("recognizers: [{name: Mine}]", "Recognizer 'Mine'"), (None, "cannot be read")]
)
def test_a_faulty_file_of_recognizers_names_its_fault(tmp_path, content, told):
    file = tmp_path / "recognizers.yaml"
    if content is not None:
        file.write_text(content)

    with pytest.raises(ConfigurationError) as refused:
        pool_detector(DetectionSettings(recognizers=file))

    assert "SLUICE_DETECTION__RECOGNIZERS" in str(refused.value) and told in str(refused.value)
